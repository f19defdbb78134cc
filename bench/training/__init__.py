"""Training of the two models that `scanning` ships with, from the rows in `bench/scanner_rows` and
`bench/authorship_rows`.

made_from         hashes of rows, code and weights, and the command line
fitting           logistic regression
rows              the scanner's rows and their features
validation        measures of the scanner's model on unseen authors
scanner_model     trains and checks the scanner's model
authorship_model  trains and checks the model of pasted text
"""
