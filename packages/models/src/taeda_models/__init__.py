"""Networks as configurable classes; where weights are published, the keys of `state_dict` are theirs.

Nothing is fetched: ``model.load_state_dict(taeda.load(path))`` reads a file that was downloaded before. Functions such
as `resnet50` make a class with the sizes of a published network; further options are the class's.
"""

from taeda_models.alexnet import *
from taeda_models.alexnet import __all__ as _alexnet
from taeda_models.bert import *
from taeda_models.bert import __all__ as _bert
from taeda_models.convnext import *
from taeda_models.convnext import __all__ as _convnext
from taeda_models.dcgan import *
from taeda_models.dcgan import __all__ as _dcgan
from taeda_models.densenet import *
from taeda_models.densenet import __all__ as _densenet
from taeda_models.efficientnet import *
from taeda_models.efficientnet import __all__ as _efficientnet
from taeda_models.gnmt import *
from taeda_models.gnmt import __all__ as _gnmt
from taeda_models.googlenet import *
from taeda_models.googlenet import __all__ as _googlenet
from taeda_models.gpt2 import *
from taeda_models.gpt2 import __all__ as _gpt2
from taeda_models.language import *
from taeda_models.language import __all__ as _language
from taeda_models.mobilenet import *
from taeda_models.mobilenet import __all__ as _mobilenet
from taeda_models.ncf import *
from taeda_models.ncf import __all__ as _ncf
from taeda_models.regnet import *
from taeda_models.regnet import __all__ as _regnet
from taeda_models.resnet import *
from taeda_models.resnet import __all__ as _resnet
from taeda_models.shufflenet import *
from taeda_models.shufflenet import __all__ as _shufflenet
from taeda_models.squeezenet import *
from taeda_models.squeezenet import __all__ as _squeezenet
from taeda_models.swin import *
from taeda_models.swin import __all__ as _swin
from taeda_models.unet import *
from taeda_models.unet import __all__ as _unet
from taeda_models.vae import *
from taeda_models.vae import __all__ as _vae
from taeda_models.vgg import *
from taeda_models.vgg import __all__ as _vgg
from taeda_models.vit import *
from taeda_models.vit import __all__ as _vit

__version__ = "0.1.0"
__all__ = [
    *_alexnet,
    *_bert,
    *_convnext,
    *_dcgan,
    *_densenet,
    *_efficientnet,
    *_gnmt,
    *_googlenet,
    *_gpt2,
    *_language,
    *_mobilenet,
    *_ncf,
    *_regnet,
    *_resnet,
    *_shufflenet,
    *_squeezenet,
    *_swin,
    *_unet,
    *_vae,
    *_vgg,
    *_vit,
]
