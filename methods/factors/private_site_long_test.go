//go:build long

package factors

import (
	"fmt"
	"testing"

	"parley/method/methodtest"
)

// Nothing of a site's rows is in what it says but what the noised sums tell: the
// same sums give the same bytes, whatever the rows are, and even if no noise
// could have brought the sums about. What site-1 lacks makes no difference.
func TestAnswersFollowFromNoisedSumsAlone(t *testing.T) {
	for name, s := range privateStudies(t) {
		tasks := methodtest.Tasks(t, Method{}, s.plan, sources(s))
		for _, site := range []string{"site-0", "site-1"} {
			data := neighbours(methodtest.Collect(t, s.data[site]))
			for i, scale := range forcedScales {
				if site == "site-1" && i%3 != 2 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%g", name, site, scale), func(t *testing.T) {
					methodtest.Transcript(t, Method{}, s.plan, site, tasks[site], scale, data)
				})
			}
		}
	}
}
