package regression_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Weights that are no numbers of people and have another mean than 1 make standard errors wrong, by the
// root of Σw²/Σw if they are a sample's; with a mean of 1, and hardly unequal, they do not, and 120 right
// studies get no verdict, each with a probability of .001 at most.
func TestStandardErrorsThatDoNotFitWeights(t *testing.T) {
	factor := regexp.MustCompile(`by a factor of about ([0-9.]+)\.`)
	r := rand.New(rand.NewPCG(37, 5))
	for name, options := range map[string]string{
		"classes": "outcome: {column: died, levels: [\"no\", \"yes\"]}\nweight: worth",
		"counts":  "outcome: {column: falls}\nlikelihood: poisson\noffset: exposure\nweight: worth",
		"numbers": "outcome: {column: days}\nweight: worth",
	} {
		p := stayPlan(t, options)
		for _, c := range []struct {
			least, most float64
			studies     int
			want        string
		}{{0.7, 1.3, 40, ""}, {0.3, 3, 3, "narrow"}, {0.4, 0.6, 3, "wide"}} {
			for range c.studies {
				rows := stays(r.Uint64(), 500, func(age, dose, sex float64) float64 { return 0.3 * age })
				sum, squares := 0.0, 0.0
				for i := range rows {
					w := c.least + (c.most-c.least)*r.Float64()
					sum, squares = sum+w, squares+w*w
					rows[i].Subject[0], rows[i].Subject[4] = fmt.Sprint(r.NormFloat64()), fmt.Sprint(w)
				}
				m, out := run(t, among(t, p, rows))
				said := strings.Join(out.Result.Verdicts(), "\n")
				if !strings.Contains(said, "Standard errors do not fit the weights worth") != (c.want == "") {
					t.Fatalf("%s, weights from %v to %v: said %q", name, c.least, c.most, said)
				}
				if c.want == "" {
					continue
				}
				text := strings.Join(m.Cautions().Lines(), "\n") + "."
				found := factor.FindStringSubmatch(text)
				if found == nil || !strings.Contains(text, "too "+c.want+": ") {
					t.Fatalf("%s, weights from %v to %v: said %q", name, c.least, c.most, text)
				}
				truth := math.Abs(math.Log(squares/sum)) / 2
				if x, _ := strconv.ParseFloat(found[1], 64); math.Abs(math.Log(x)-truth) > 0.2 {
					t.Errorf("%s, weights from %v to %v: a factor of %v, and it is %v", name, c.least, c.most, x, math.Exp(truth))
				}
			}
		}
	}
}
