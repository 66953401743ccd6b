package oneshot

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/papers/deal"
	"parley/papers/protocoltest"
)

var scenarios = []evaluate.Scenario{evaluate.IID, evaluate.G, evaluate.K, evaluate.GK}

// draw is one draw of the synthetic data with its stored folds and sites.
type draw struct {
	number int
	data   *dataset.Table
	folds  [][]string // ids held out, ascending
	sites  map[where][]evaluate.Placement
}

// where names the stored training sites of one fold.
type where struct {
	fold   int
	groups bool // G, not IID
	sites  int
}

// openDraw reads draw s of the synthetic data in dir.
func openDraw(ctx context.Context, dir string, s int) (*draw, error) {
	// The files of all draws share a folder, which is not how data sets lie.
	tmp, err := os.MkdirTemp("", "oneshot")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	prefix := fmt.Sprintf("sd%d_", s)
	for _, name := range []string{"subjects", "view_v1", "view_v2", "view_v3"} {
		b, err := os.ReadFile(filepath.Join(dir, prefix+name+".csv.gz"))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(tmp, name+".csv.gz"), b, 0o666); err != nil {
			return nil, err
		}
	}
	d := &draw{number: s, sites: map[where][]evaluate.Placement{}}
	if d.data, err = deal.Open(ctx, tmp); err != nil {
		return nil, err
	}
	ids, folds, err := dataset.Labels(ctx, d.data, "fold")
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		f, err := strconv.Atoi(folds[i])
		if err != nil || f < 0 || f > 2 {
			return nil, fmt.Errorf("draw %d: subject %s is in fold %q", s, id, folds[i])
		}
		d.folds = append(d.folds, make([][]string, max(0, f+1-len(d.folds)))...)
		d.folds[f] = append(d.folds[f], id)
	}
	err = protocoltest.ReadCSV(filepath.Join(dir, prefix+"sites.csv.gz"),
		"test_fold,scenario,sites,id,site", func(c []string) error {
			fold, err1 := strconv.Atoi(c[0])
			n, err2 := strconv.Atoi(c[2])
			site, err3 := strconv.Atoi(c[4])
			if err := cmp.Or(err1, err2, err3); err != nil {
				return err
			}
			w := where{fold, c[1] == evaluate.G.String(), n}
			d.sites[w] = append(d.sites[w], evaluate.Placement{ID: c[3], Site: site - 1})
			return nil
		})
	return d, err
}

// splits returns the folds of one scenario.
func (d *draw) splits(sc evaluate.Scenario, sites int) ([]evaluate.Split, error) {
	lacking, err := evaluate.Lacking(sc, sites, len(d.data.Schema().Views))
	if err != nil {
		return nil, err
	}
	var splits []evaluate.Split
	for f, test := range d.folds {
		train := d.sites[where{f, sc == evaluate.G || sc == evaluate.GK, sites}]
		if len(train) == 0 {
			return nil, fmt.Errorf("draw %d: no sites for fold %d of %v with %d sites", d.number, f, sc, sites)
		}
		splits = append(splits, evaluate.Split{
			Fold: evaluate.Fold{Index: f, Test: test}, Train: train, Sites: sites, Lacking: lacking,
		})
	}
	return splits, nil
}
