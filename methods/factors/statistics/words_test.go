package statistics

import (
	"fmt"
	"strings"
	"testing"

	"parley/dataset"
	"parley/methods/factors/factorstest"
)

// What such a study explains is about the mean of all sites, so that the headline must not speak of the
// differences at one.
func TestStatisticsHeadlineCountsDifferencesBetweenSites(t *testing.T) {
	for sites, says := range map[string]string{"north, south": " of the differences between subjects, with those between sites, by view", "north": " of the differences between subjects, by view"} {
		plan, subjects := wide(t, 300, 2000)
		plan = strings.Replace(plan, "[north, south]", "["+sites+"]", 1)
		p := newPlay(t, plan)
		data := map[string]*dataset.Table{}
		names := p.Plan.Sites
		for i, site := range names {
			var mine []dataset.Row
			for k := i; k < len(subjects); k += len(names) {
				mine = append(mine, dataset.Row{ID: fmt.Sprintf("%05d", k), Views: subjects[k]})
			}
			data[site] = factorstest.Must(dataset.NewTable(p.Plan.Schema(), mine))(t)
		}
		p.behindGates(data, 1)
		if _, result := p.run(); !strings.Contains(result.Found, says) {
			t.Errorf("%s: %q, want %q", sites, result.Found, says)
		}
	}
}
