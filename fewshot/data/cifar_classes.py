"""The classes of CIFAR-100 and how few-shot learning divides them."""

import numpy as np


def _words(text: str) -> tuple[str, ...]:
  return tuple(text.split())


FINE = _words("""
  apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy
  bridge bus butterfly camel can castle caterpillar cattle chair chimpanzee
  clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant
  flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower
  leopard lion lizard lobster man maple_tree motorcycle mountain mouse
  mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree
  plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea
  seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
  sunflower sweet_pepper table tank telephone television tiger tractor train
  trout tulip turtle wardrobe whale willow_tree wolf woman worm
""")
COARSE = _words("""
  aquatic_mammals fish flowers food_containers fruit_and_vegetables
  household_electrical_devices household_furniture insects large_carnivores
  large_man-made_outdoor_things large_natural_outdoor_scenes
  large_omnivores_and_herbivores medium_mammals non-insect_invertebrates
  people reptiles small_mammals trees vehicles_1 vehicles_2
""")
_CIFAR_FS_VAL = _words("""
  beaver otter flatfish shark lamp television beetle butterfly sea camel
  cattle crab crocodile maple_tree motorcycle tractor
""")
_CIFAR_FS_TEST = _words("""
  whale poppy rose sweet_pepper telephone bed table wardrobe leopard plain
  chimpanzee fox snail worm baby man woman bicycle pickup_truck rocket
""")
_FC100_VAL = _words("""
  large_carnivores large_omnivores_and_herbivores non-insect_invertebrates
  small_mammals
""")
_FC100_TEST = _words("""
  aquatic_mammals insects medium_mammals people
""")

# Numbers of the base, validation and novel classes.
Parts = tuple[list[int], list[int], list[int]]


def cifar_fs() -> Parts:
  """CIFAR-FS: 64 / 16 / 20 classes."""
  return _parts(FINE, _CIFAR_FS_VAL, _CIFAR_FS_TEST)


def fc100(superclasses: np.ndarray) -> Parts:
  """FC100: 60 / 20 / 20 classes, by the superclass of each class [100]."""
  return _parts(
    [COARSE[number] for number in superclasses], _FC100_VAL, _FC100_TEST
  )


def _parts(kinds, val, test) -> Parts:
  parts = ([], [], [])
  for number, kind in enumerate(kinds):
    parts[1 if kind in val else 2 if kind in test else 0].append(number)
  return parts
