package main

import (
	_ "embed" // for the table
	"slices"

	"parley/papers/dppvi"
	"parley/papers/experiment"
	"parley/papers/fedmvppca"
	"parley/papers/graffl"
)

// settings are what the papers say of hyperparameters.
var settings = slices.Concat(dppvi.Settings(), fedmvppca.Settings(), graffl.Settings())

//go:embed status.txt
var statusTable string

// status has a line for every table and figure.
var status = experiment.ReadStatus(statusTable)
