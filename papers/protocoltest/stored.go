package protocoltest

import (
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"parley/judge/evaluate"
)

// StoredSplits reads the first repeats of the stored splits of a data set with
// the given number of views: three folds each, three sites, which are those of IID and K
// or of G and G/K.
func StoredSplits(path string, sc evaluate.Scenario, views, repeats int) ([]evaluate.Split, error) {
	lacking, err := evaluate.Lacking(sc, 3, views)
	if err != nil {
		return nil, err
	}
	column := 3
	if sc == evaluate.G || sc == evaluate.GK {
		column = 4
	}
	splits := make([]evaluate.Split, 3*repeats)
	err = ReadCSV(path, "rep,fold,id,centre_iid,centre_g", func(c []string) error {
		rep, err1 := strconv.Atoi(c[0])
		fold, err2 := strconv.Atoi(c[1])
		site, err3 := strconv.Atoi(c[column])
		if err := cmp.Or(err1, err2, err3); err != nil {
			return err
		}
		if rep >= repeats {
			return nil
		}
		s := &splits[3*rep+fold]
		s.Repeat, s.Index, s.Sites, s.Lacking = rep, fold, 3, lacking
		if site == 0 {
			s.Test = append(s.Test, c[2])
		} else {
			s.Train = append(s.Train, evaluate.Placement{ID: c[2], Site: site - 1})
		}
		return nil
	})
	for i := range splits {
		slices.Sort(splits[i].Test)
		if err == nil && len(splits[i].Test) == 0 {
			err = fmt.Errorf("%s: nothing for repeat %d, fold %d", path, i/3, i%3)
		}
	}
	return splits, err
}

// ReadCSV calls use with every record of a compressed table.
func ReadCSV(path, header string, use func([]string) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	records, err := csv.NewReader(z).ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for i, r := range records {
		if i == 0 {
			if got := strings.Join(r, ","); got != header {
				return fmt.Errorf("%s: its columns are %s, not %s", path, got, header)
			}
			continue
		}
		if err := use(r); err != nil {
			return fmt.Errorf("%s, line %d: %w", path, i+1, err)
		}
	}
	return nil
}
