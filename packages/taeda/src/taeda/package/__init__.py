"""Code and data of a model in one file, which a program elsewhere loads without having the code installed.

`PackageExporter` writes a zip file of sources, pickles and other resources; every module that these need is written
along, left to the program that loads the file, replaced by a stand-in, or refused, as the caller says by patterns of
names. `PackageImporter` imports from such a file, into a world of modules of its own.

Example:
    >>> import io
    >>> file = io.BytesIO()
    >>> with taeda.package.PackageExporter(file) as exporter:
    ...     exporter.save_source_string("mine", "def double(x):\\n    return x * 2")
    ...     exporter.save_pickle("weights", "bias.pkl", taeda.ones(2))
    >>> importer = taeda.package.PackageImporter(io.BytesIO(file.getvalue()))
    >>> importer.import_module("mine").double(importer.load_pickle("weights", "bias.pkl"))
    tensor([2., 2.])
"""

from taeda.package._exporting import EmptyMatchError, PackageExporter, PackagingError
from taeda.package._importing import Directory, PackageImporter, is_from_package
from taeda.package._names import (
    GlobGroup,
    Importer,
    ObjMismatchError,
    ObjNotFoundError,
    OrderedImporter,
    sys_importer,
)

__all__ = [
    "Directory", "EmptyMatchError", "GlobGroup", "Importer", "ObjMismatchError", "ObjNotFoundError", "OrderedImporter",
    "PackageExporter", "PackageImporter", "PackagingError", "is_from_package", "sys_importer",
]  # fmt: skip
