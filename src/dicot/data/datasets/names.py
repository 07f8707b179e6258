"""The 128 univariate (UCR 2018) and 30 multivariate (UEA 2018) archive sets with their sizes, and six large sets."""

from pathlib import Path

from dicot.data.datasets.base import Sizes

# name, training cases, test cases, time steps, classes
_UCR = """
ACSF1 100 100 1460 10; Adiac 390 391 176 37; AllGestureWiimoteX 300 700 - 10; AllGestureWiimoteY 300 700 - 10;
AllGestureWiimoteZ 300 700 - 10; ArrowHead 36 175 251 3; BME 30 150 128 3; Beef 30 30 470 5; BeetleFly 20 20 512 2;
BirdChicken 20 20 512 2; CBF 30 900 128 3; Car 60 60 577 4; Chinatown 20 343 24 2; ChlorineConcentration 467 3840 166 3;
CinCECGTorso 40 1380 1639 4; Coffee 28 28 286 2; Computers 250 250 720 2; CricketX 390 390 300 12;
CricketY 390 390 300 12; CricketZ 390 390 300 12; Crop 7200 16800 46 24; DiatomSizeReduction 16 306 345 4;
DistalPhalanxOutlineAgeGroup 400 139 80 3; DistalPhalanxOutlineCorrect 600 276 80 2; DistalPhalanxTW 400 139 80 6;
DodgerLoopDay 78 80 288 7; DodgerLoopGame 20 138 288 2; DodgerLoopWeekend 20 138 288 2; ECG200 100 100 96 2;
ECG5000 500 4500 140 5; ECGFiveDays 23 861 136 2; EOGHorizontalSignal 362 362 1250 12;
EOGVerticalSignal 362 362 1250 12; Earthquakes 322 139 512 2; ElectricDevices 8926 7711 96 7;
EthanolLevel 504 500 1751 4; FaceAll 560 1690 131 14; FaceFour 24 88 350 4; FacesUCR 200 2050 131 14;
FiftyWords 450 455 270 50; Fish 175 175 463 7; FordA 3601 1320 500 2; FordB 3636 810 500 2;
FreezerRegularTrain 150 2850 301 2; FreezerSmallTrain 28 2850 301 2; Fungi 18 186 201 18; GestureMidAirD1 208 130 - 26;
GestureMidAirD2 208 130 - 26; GestureMidAirD3 208 130 - 26; GesturePebbleZ1 132 172 - 6; GesturePebbleZ2 146 158 - 6;
GunPoint 50 150 150 2; GunPointAgeSpan 135 316 150 2; GunPointMaleVersusFemale 135 316 150 2;
GunPointOldVersusYoung 136 315 150 2; Ham 109 105 431 2; HandOutlines 1000 370 2709 2; Haptics 155 308 1092 5;
Herring 64 64 512 2; HouseTwenty 40 119 2000 2; InlineSkate 100 550 1882 7; InsectEPGRegularTrain 62 249 601 3;
InsectEPGSmallTrain 17 249 601 3; InsectWingbeatSound 220 1980 256 11; ItalyPowerDemand 67 1029 24 2;
LargeKitchenAppliances 375 375 720 3; Lightning2 60 61 637 2; Lightning7 70 73 319 7; Mallat 55 2345 1024 8;
Meat 60 60 448 3; MedicalImages 381 760 99 10; MelbournePedestrian 1194 2439 24 10;
MiddlePhalanxOutlineAgeGroup 400 154 80 3; MiddlePhalanxOutlineCorrect 600 291 80 2; MiddlePhalanxTW 399 154 80 6;
MixedShapesRegularTrain 500 2425 1024 5; MixedShapesSmallTrain 100 2425 1024 5; MoteStrain 20 1252 84 2;
NonInvasiveFetalECGThorax1 1800 1965 750 42; NonInvasiveFetalECGThorax2 1800 1965 750 42; OSULeaf 200 242 427 6;
OliveOil 30 30 570 4; PLAID 537 537 - 11; PhalangesOutlinesCorrect 1800 858 80 2; Phoneme 214 1896 1024 39;
PickupGestureWiimoteZ 50 50 - 10; PigAirwayPressure 104 208 2000 52; PigArtPressure 104 208 2000 52;
PigCVP 104 208 2000 52; Plane 105 105 144 7; PowerCons 180 180 144 2; ProximalPhalanxOutlineAgeGroup 400 205 80 3;
ProximalPhalanxOutlineCorrect 600 291 80 2; ProximalPhalanxTW 400 205 80 6; RefrigerationDevices 375 375 720 3;
Rock 20 50 2844 4; ScreenType 375 375 720 3; SemgHandGenderCh2 300 600 1500 2; SemgHandMovementCh2 450 450 1500 6;
SemgHandSubjectCh2 450 450 1500 5; ShakeGestureWiimoteZ 50 50 - 10; ShapeletSim 20 180 500 2; ShapesAll 600 600 512 60;
SmallKitchenAppliances 375 375 720 3; SmoothSubspace 150 150 15 3; SonyAIBORobotSurface1 20 601 70 2;
SonyAIBORobotSurface2 27 953 65 2; StarLightCurves 1000 8236 1024 3; Strawberry 613 370 235 2;
SwedishLeaf 500 625 128 15; Symbols 25 995 398 6; SyntheticControl 300 300 60 6; ToeSegmentation1 40 228 277 2;
ToeSegmentation2 36 130 343 2; Trace 100 100 275 4; TwoLeadECG 23 1139 82 2; TwoPatterns 1000 4000 128 4;
UMD 36 144 150 3; UWaveGestureLibraryAll 896 3582 945 8; UWaveGestureLibraryX 896 3582 315 8;
UWaveGestureLibraryY 896 3582 315 8; UWaveGestureLibraryZ 896 3582 315 8; Wafer 1000 6164 152 2; Wine 57 54 234 2;
WordSynonyms 267 638 270 25; Worms 181 77 900 5; WormsTwoClass 181 77 900 2; Yoga 300 3000 426 2
"""
# name, training cases, test cases, channels, time steps, classes
_UEA = """
ArticularyWordRecognition 275 300 9 144 25; AtrialFibrillation 15 15 2 640 3; BasicMotions 40 40 6 100 4;
CharacterTrajectories 1422 1436 3 - 20; Cricket 108 72 6 1197 12; DuckDuckGeese 50 50 1345 270 5; ERing 30 270 4 65 6;
EigenWorms 128 131 6 17984 5; Epilepsy 137 138 3 206 4; EthanolConcentration 261 263 3 1751 4;
FaceDetection 5890 3524 144 62 2; FingerMovements 316 100 28 50 2; HandMovementDirection 160 74 10 400 4;
Handwriting 150 850 3 152 26; Heartbeat 204 205 61 405 2; InsectWingbeat - - 200 - 10; JapaneseVowels 270 370 12 - 9;
LSST 2459 2466 6 36 14; Libras 180 180 2 45 15; MotorImagery 278 100 64 3000 2; NATOPS 180 180 24 51 6;
PEMS-SF 267 173 963 144 7; PenDigits 7494 3498 2 8 10; PhonemeSpectra 3315 3353 11 217 39; RacketSports 151 152 6 30 4;
SelfRegulationSCP1 268 293 6 896 2; SelfRegulationSCP2 200 180 7 1152 2; SpokenArabicDigits 6599 2199 13 - 10;
StandWalkJump 12 15 4 2500 3; UWaveGestureLibrary 120 320 3 315 8
"""


def _table(text: str, *fixed: str) -> dict[str, Sizes]:
    rows = (entry.split() for entry in text.split(";"))
    return {
        name: Sizes(*(None if size == "-" else int(size) for size in (*sizes[:2], *fixed, *sizes[2:])))
        for name, *sizes in rows
    }


_UCR_SIZES, _UEA_SIZES = _table(_UCR, "1"), _table(_UEA)
UCR: tuple[str, ...] = tuple(_UCR_SIZES)
UEA: tuple[str, ...] = tuple(_UEA_SIZES)
LARGE = ("ecg", "harth", "pamap2-paper", "skoda-paper", "sleep", "wisdm2")  # of the Di-COT paper
OFFICIAL: dict[str, Sizes] = _UCR_SIZES | _UEA_SIZES
# The sets that a setting may be chosen on: half of the archives' that were at hand, drawn once, and two large ones. All
# others are only reported: nothing is chosen by their scores.
DEVELOPMENT = tuple(Path(__file__).with_name("development.txt").read_text(encoding="utf-8").split())
