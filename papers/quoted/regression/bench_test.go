package regression

import (
	"testing"

	"parley/papers/experiment"
	"parley/privacy/account"
)

// What a private study of two classes costs: ten sites of 1000 rows with 20 numbers. The bytes are those that a site
// sends.
func BenchmarkPrivateStudy(b *testing.B) {
	p, err := cases[0].draw(b.Context(), experiment.Data{}, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	bytes := 0.0
	for b.Loop() {
		_, out, err := fitOf(b.Context(), p, account.Budget{Epsilon: 1, Delta: rivalDelta}, false)
		if err != nil {
			b.Fatal(err)
		}
		bytes = sent(out, len(p.Sites))
	}
	b.ReportMetric(bytes, "B/site")
}
