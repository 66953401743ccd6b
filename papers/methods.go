package main

import (
	"strings"

	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	dppvimethod "parley/methods/published/dppvi"
	fedmvppcamethod "parley/methods/published/fedmvppca"
	grafflmethod "parley/methods/published/graffl"
	"parley/methods/published/vae"
	"parley/methods/regression"
	"parley/papers/experiment"
)

// uses says of which methods the numbers of experiments are, by the longest beginning of their
// names that stands here.
var uses = map[string]method.Registry{
	"fedmvppca-table-":            {factors.Method{}, fedmvppcamethod.Method{}, vae.Method{}},
	"fedmvppca-table-2-mfeat":     {factors.Method{}, fedmvppcamethod.Method{}},
	"fedmvppca-table-2-mfeat-vae": {factors.Method{}, vae.Method{}},
	"fedmvppca-table-5":           {factors.Method{}, fedmvppcamethod.Method{}},
	"fedmvppca-table-7":           {fedmvppcamethod.Method{}, vae.Method{}},
	"fedmvppca-private":           {factors.Method{}, fedmvppcamethod.Method{}},
	"fedmvppca-figure-":           {fedmvppcamethod.Method{}},
	"fedmvppca-figure-5":          {factors.Method{}},
	"fedmvppca-complexity":        {fedmvppcamethod.Method{}},
	"fedmvppca-subspace":          {factors.Method{}},
	"dppvi-":                      {regression.Method{}, dppvimethod.Method{}},
	"dppvi-table-1":               {},
	"dppvi-settings":              {},
	"graffl-figure-3":             {mixture.Method{}, grafflmethod.Method{}},
	"graffl-table-":               {mixture.Method{}, grafflmethod.Method{}, regression.Method{}},
	"parley-":                     {factors.Method{}},
	"parley-alzheimer":            {factors.Method{}, fedmvppcamethod.Method{}},
	"parley-components":           {mixture.Method{}},
	"parley-mixtures":             {mixture.Method{}},
	"parley-income":               {regression.Method{}, dppvimethod.Method{}},
	"parley-intercepts":           {regression.Method{}},
	"parley-intervals":            {regression.Method{}},
	"parley-reference":            {regression.Method{}},
	"parley-totals":               {factors.Method{}, regression.Method{}, mixture.Method{}},
	"parley-rivals":               {regression.Method{}, dppvimethod.Method{}},
}

// withMethods tells experiments their methods.
func withMethods(all experiment.List) experiment.List {
	for i := range all {
		longest := -1
		for prefix, methods := range uses {
			if strings.HasPrefix(all[i].Name, prefix) && len(prefix) > longest {
				all[i].Methods, longest = methods, len(prefix)
			}
		}
	}
	return all
}
