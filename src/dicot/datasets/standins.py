"""The stand-ins by name."""

from dicot.datasets.arrhythmia import ARRHYTHMIA
from dicot.datasets.hapt import HAPT
from dicot.datasets.night import NIGHT
from dicot.datasets.standin import StandIn
from dicot.datasets.wisdm2019 import WISDM_2019

STANDINS: dict[str, StandIn] = {standin.card.name: standin for standin in (HAPT, WISDM_2019, NIGHT, ARRHYTHMIA)}
