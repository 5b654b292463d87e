"""From image files to stored rows.

Each line imports only from lines below it:

  pipeline.py     files -> prepared folder -> rows; each step runs only once
  catalogue.py    checks the contents of an archive; checksums and splits
  contents.py     which file is an image of which class and domain
  pictures.py     decodes image files
  archive.py      reads a folder or a zip
  problems.py     reports all files that cannot be used in one error
  splits.py       draws a validation split
  parallel.py     runs a function on many images, in threads
"""
