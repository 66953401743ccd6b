package mixture

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// Whatever a file says, there is an error or an observation of finite numbers.
func FuzzReleased(f *testing.F) {
	var setups []*setup
	for _, privacy := range []string{"{protection: none}", "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 2, delta: 1e-5}}"} {
		for _, features := range []int{1, 3} {
			s := known(text(features, "components: 2", privacy))
			all := &released{Sums: make([]float64, s.Of.Len())}
			for _, site := range s.Plan.Sites {
				one := releasedSite{Site: site, Rows: 100}
				if s.Sum != nil {
					one.SD, one.RowsSD = 2, 5
				}
				all.Sites = append(all.Sites, one)
			}
			file, err := all.file(s.Plan)
			if err != nil {
				f.Fatal(err)
			}
			if _, err := s.readReleased(file.Data); err != nil {
				f.Fatal(err)
			}
			setups = append(setups, s)
			f.Add(file.Data)
			for _, cut := range [][2]string{{"[0,", "[1e300,"}, {`"rows":100`, `"rows":-1e300`}, {`"rows":100`, `"rows":0`}, {`"sd":`, `"sd":1e308,"_":`}, {`"site":"`, `"site":"x`}} {
				f.Add([]byte(strings.Replace(string(file.Data), cut[0], cut[1], 1)))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, s := range setups {
			all, err := s.readReleased(data)
			if err != nil {
				continue
			}
			o, err := s.observation(all)
			if err != nil {
				continue
			}
			if text, err := json.Marshal(o); err != nil || !(o.Rows > 0) || math.IsInf(o.Rows, 0) {
				t.Errorf("%s is observed, %v", text, err)
			}
		}
	})
}
