"""Your own images, one folder per class: two classes of two images or more.

python train_fewshot.py --config=configs/fewshot/folder.py --data_dir=IMAGES

`python -m fewshot.inspect folder --data_dir=IMAGES` shows what is read, and
what a run will do: what there is decides how classes are divided, and ways and
shots.
The default head is `nam`. Preset `cpu`, the default, takes some minutes; `long`
has larger images and a larger network, and takes hours on a CPU.
"""

from configs.fewshot import base


def get_config(arg: str = ""):
  """arg: "heads,preset"; see base.py."""
  return base.get_config(
    arg,
    {
      "cpu": {
        "data_kwargs": {"image_size": 48},
        "backbone": "conv32",
        "pad": 5,
        "num_episodes": 500,
        "num_val_episodes": 100,
        "stage1": base.stage(400, 32, 200),
        "stage2": base.stage(200, 8, 100, learning_rate=0.01),
      },
      "long": {
        "backbone": "conv64",
        "pad": 8,
        "stage1": base.stage(5000, 64, 1000),
        "stage2": base.stage(2000, 8, 500, learning_rate=0.01),
      },
    },
    default="nam",
    data="folder",
    flip=True,
    num_query=10,
    adapt=True,
    learn_all=True,
  )
