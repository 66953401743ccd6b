package graffl

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"parley/methods/graffl/augment"
)

// table is rows of features with a binary label. What is missing is NaN.
type table struct {
	rows   [][]float64
	labels []bool
}

// appliedSet is a data set of the applied experiments, and how its rows are dealt.
type appliedSet struct {
	name, file string
	label      string   // column; 1 is the scarce class
	drop       []string // columns that are no features: identities, and what leaks the label
	zeros      []string // columns in which 0 means missing
	hidden     []int    // widths of the encoder's hidden layers
	splits     int
	settings   []setting
}

// setting is how rows are dealt to sites.
type setting struct {
	name  string
	codes int // numbers in a code
	sites int
	rows  int     // that each site learns from; 0 deals all that are not held
	aside float64 // share of all rows that is kept for scoring
	share float64 // of the scarce class at every site but the first, by leaving rows out; 0 leaves none out
}

var appliedSets = []appliedSet{
	{name: "heart", file: "heart-sites/heart_sites.csv.gz", label: "disease", drop: []string{"site", "num"}, zeros: []string{"chol"}, hidden: []int{32}, splits: 10,
		settings: []setting{{"1 %", 5, 4, 0, 0.3, 0.01}, {"5 %", 5, 4, 0, 0.3, 0.05}, {"10 %", 5, 4, 0, 0.3, 0.10}, {"5 %", 3, 4, 0, 0.3, 0.05}}},
	{name: "physionet", file: "physionet2012/set_a_features.csv.gz", label: "In_hospital_death",
		drop: []string{"RecordID", "SAPS_I", "SOFA", "Length_of_stay", "Survival"}, hidden: []int{64}, splits: 3,
		settings: []setting{{"3 × 1333", 24, 3, 1000, 0.25, 0}, {"3 × 200", 24, 3, 200, 0.25, 0}, {"3 × 1333", 8, 3, 1000, 0.25, 0}, {"3 × 200", 8, 3, 200, 0.25, 0}}},
}

// read reads the set below a folder of data.
func (s appliedSet) read(dir string) (table, error) {
	name := filepath.Join(dir, filepath.FromSlash(s.file))
	f, err := os.Open(name)
	if err != nil {
		return table{}, fmt.Errorf("%w (-data names the folder that holds it)", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return table{}, fmt.Errorf("reading %s: %w", name, err)
	}
	t, err := s.parse(z)
	if err != nil {
		return table{}, fmt.Errorf("reading %s: %w", name, err)
	}
	return t, nil
}

// parse reads comma-separated values with a header line. Empty cells are missing.
func (s appliedSet) parse(r io.Reader) (t table, err error) {
	lines := csv.NewReader(r)
	header, err := lines.Read()
	if err != nil {
		return t, err
	}
	for _, c := range slices.Concat([]string{s.label}, s.drop, s.zeros) {
		if !slices.Contains(header, c) {
			return t, fmt.Errorf("there is no column %s", c)
		}
	}
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return t, err
		}
		var row []float64
		for j, cell := range line {
			switch {
			case header[j] == s.label:
				if cell != "0" && cell != "1" {
					return t, fmt.Errorf("row %d: %s is %q, want 0 or 1", len(t.rows)+1, s.label, cell)
				}
				t.labels = append(t.labels, cell == "1")
				continue
			case slices.Contains(s.drop, header[j]):
				continue
			}
			v := math.NaN()
			if cell != "" {
				if v, err = strconv.ParseFloat(cell, 64); err != nil {
					return t, fmt.Errorf("row %d, column %s: %w", len(t.rows)+1, header[j], err)
				}
			}
			if v == 0 && slices.Contains(s.zeros, header[j]) {
				v = math.NaN()
			}
			row = append(row, v)
		}
		t.rows = append(t.rows, row)
	}
}

// dealt is one split of a table.
type dealt struct {
	sites []table
	all   table // what the sites would have if nothing had been left out
	held  table // what nothing is learned from
}

// split deals rows: the same share of both classes to the held ones and to every
// site; then rows of the scarce class are left out at every site but the first, down
// to the setting's share, but one.
func (t table) split(s setting, rng *rand.Rand) (dealt, error) {
	d := dealt{sites: make([]table, s.sites)}
	room := float64(len(t.rows)) * (1 - s.aside)
	if float64(s.rows*s.sites) > room+1 {
		return d, fmt.Errorf("%d rows are too few for %d sites of %d", len(t.rows), s.sites, s.rows)
	}
	for _, class := range []bool{false, true} {
		var own []int
		for _, i := range rng.Perm(len(t.rows)) {
			if t.labels[i] == class {
				own = append(own, i)
			}
		}
		n := int(s.aside * float64(len(own)))
		for _, i := range own[:n] {
			d.held.add(t, i)
		}
		own = own[n:]
		if s.rows > 0 {
			own = own[:min(len(own), int(math.Round(float64(len(own)*s.rows*s.sites)/room)))]
		}
		for k, i := range own {
			d.all.add(t, i)
			to := &d.sites[k%s.sites]
			if class && s.share > 0 && k%s.sites > 0 {
				scarce, other := to.count()
				if float64(scarce) >= max(1, math.Round(float64(other)*s.share/(1-s.share))) {
					continue
				}
			}
			to.add(t, i)
		}
	}
	return d, nil
}

func (t *table) add(from table, i int) {
	t.rows, t.labels = append(t.rows, from.rows[i]), append(t.labels, from.labels[i])
}

// count returns how many labels are true, and how many are false.
func (t table) count() (scarce, other int) { return t.labelled().Count() }

func (t table) labelled() augment.Labelled { return augment.Labelled{Rows: t.rows, Labels: t.labels} }

// scarce returns the rows whose label is true, one after the other.
func (t table) scarce() (rows []float64) {
	for i, row := range t.rows {
		if t.labels[i] {
			rows = append(rows, row...)
		}
	}
	return rows
}
