import taeda_data as data
