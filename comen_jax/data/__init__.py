"""Data sets: from files on disk to normalised batches on the devices.

Each line imports only from lines below it:

  prepare.py                  command: prepares a data set, counts its images
  registry.py                 loads a data set by name
  benchmarks/                 the published data sets, one file each
  mini_digits/                a built-in data set that needs no download
  ingest/                     image files -> catalogue -> prepared -> rows
  sources.py                  source images as a method may see them
  batches.py                  rows -> batches on the devices
  views.py                    stored squares -> the network's input
  augment.py                  random changes of training images
  spectrum.py                 amplitudes of two images mixed
  random_conv.py              images behind a random convolution
  jigsaw.py                   tiles of images in another order
  recipes.py                  which changes, and how strong
  row_store.py                decoded images, stored under a key
  coverage.py                 classes that the target has but no source
  dataset.py                  a data set in memory; leave one domain out
  disk.py                     cache folder; folders that are whole or absent
"""
