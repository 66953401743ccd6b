package association

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/internal/document"
	"parley/internal/wire"
	"parley/privacy"
	"parley/privacy/account"
	"parley/problem"
)

// Protocol is what sites agree to test under differential privacy, as a person writes it.
// Everything in it is public and chosen without a look at any site's rows: ranges and levels
// above all.
type Protocol struct {
	Version int `json:"associate"` // of the format; 1
	// Sites is how many tables are combined at least; a site's policy may want a minimum.
	Sites   int      `json:"sites"`
	Columns []coding `json:"columns"`          // of subjects.csv, in any order
	Adjust  []string `json:"adjust,omitempty"` // those of Columns that every test is adjusted for
	Privacy promise  `json:"privacy"`
}

// coding says what a column can hold. A number outside its range counts as the end of the
// range that is nearer, and a subject with a level that is not listed does not count.
type coding struct {
	Name   string      `json:"name"`
	Range  *[2]float64 `json:"range,omitempty"`  // of a number, in its own units
	Levels []string    `json:"levels,omitempty"` // of a category; the others are compared with the first
}

// promise is what one site's table reveals at most of one subject, (ε, δ).
type promise struct {
	Adjacency account.Adjacency `json:"adjacency"`
	Epsilon   float64           `json:"epsilon"`
	Delta     float64           `json:"delta"`
	// Person is the column that identifies a person, all of whose rows are then one subject; "" if every row
	// is another person.
	Person string `json:"person,omitempty"`
}

const (
	protocolVersion = 1
	// within is the probability with which the scores of a subject of the model are short
	// enough not to be clipped.
	within = 0.999
)

// ParseProtocol reads a protocol and says everything that is wrong with it; name stands for
// its file.
func ParseProtocol(name string, b []byte) (*Protocol, error) {
	p := new(Protocol)
	err := document.Document{Kind: "protocol", Plural: "protocols", First: "associate"}.Decode(name, b, p, func(_ func(string) bool, report func(path, what, hint string)) {
		if p.Version != protocolVersion {
			report("associate", fmt.Sprintf("version %d of the format is unknown", p.Version), fmt.Sprintf("this program reads version %d", protocolVersion))
		}
		if p.Sites < 2 {
			report("sites", fmt.Sprintf("%d tables cannot be combined", p.Sites), "how many sites take part at least: 2 or more")
		}
		p.checkColumns(report)
		if p.Privacy.Adjacency.Check() != nil {
			report("privacy.adjacency", fmt.Sprintf("unknown adjacency %q", string(p.Privacy.Adjacency)), "add-remove or replace-one")
		}
		if person := p.Privacy.Person; person == "id" || slices.Contains(p.Names(), person) {
			report("privacy.person", fmt.Sprintf("%q is the id, or is tested itself", person), "the column of subjects.csv with the same cell in all rows of a person")
		}
		if err := p.budget().Check(); err != nil {
			report("privacy", err.Error(), "such as {adjacency: add-remove, epsilon: 1, delta: 1e-6}")
		}
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Protocol) checkColumns(report func(path, what, hint string)) {
	const hint = "such as {name: age, range: [20, 90]} or {name: sex, levels: [f, m]}"
	names := p.Names()
	for i, c := range p.Columns {
		at := fmt.Sprintf("columns[%d]", i)
		switch r := c.Range; {
		case c.Name == "" || slices.Contains(names[:i], c.Name):
			report(at+".name", fmt.Sprintf("%q is empty or stands twice", c.Name), "each column once")
		case (r == nil) == (len(c.Levels) == 0):
			report(at, "it is either a number, which has a range, or a category, which has levels", hint)
		case r != nil && !(r[0] < r[1] && r[1]-r[0] < math.Inf(1)):
			report(at+".range", fmt.Sprintf("%v is no range", *r), hint)
		case r == nil && len(c.Levels) < 2:
			report(at+".levels", "one level tells nothing", hint)
		}
		for k, l := range c.Levels {
			if !known(l) || slices.Contains(c.Levels[:k], l) {
				report(fmt.Sprintf("%s.levels[%d]", at, k), fmt.Sprintf("%q is no value or stands twice", l), "each level once, as it is written in subjects.csv")
			}
		}
	}
	for i, a := range p.Adjust {
		if !slices.Contains(names, a) || slices.Contains(p.Adjust[:i], a) {
			report(fmt.Sprintf("adjust[%d]", i), fmt.Sprintf("%q is no column of the protocol, or stands twice", a), problem.DidYouMean(a, names, "one of "+problem.Names(names)))
		}
	}
	if len(p.Columns) <= len(p.Adjust) {
		report("columns", "no column is left to test", hint)
	}
}

// known says whether a cell has anything in it.
func known(cell string) bool {
	return !slices.Contains([]string{"", "na", "nan", "null"}, strings.ToLower(cell))
}

// Names are those of the columns, in order.
func (p *Protocol) Names() (names []string) {
	for _, c := range p.Columns {
		names = append(names, c.Name)
	}
	return names
}

func (p *Protocol) budget() account.Budget {
	return account.Budget{Epsilon: p.Privacy.Epsilon, Delta: p.Privacy.Delta}
}

// digest names the tests of one model by one protocol, in hexadecimal: a site answers it once.
// model is the SHA-256 of the model's file.
func (p *Protocol) digest(model string) (string, error) {
	data, err := wire.Marshal(struct {
		Protocol Protocol `cbor:"protocol"`
		Model    string   `cbor:"model"`
	}{*p, model})
	if err != nil {
		return "", fmt.Errorf("naming a protocol: %w", err)
	}
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:]), nil
}

// Release is what a site releases by a protocol, once, and what follows from it.
type Release struct {
	// Study is what the site's gate must know: an (ε, δ) of its own for one subject, and one
	// noised sum.
	Study privacy.Study
	// Contribution is what a row adds to the sum, for [privacy.Session.Sum].
	Contribution func(row *dataset.Row, v []float64) (block int)
	// Table makes a site's table of its noised sum, which costs no privacy. What the noise
	// hides has no test, and is named in notes.
	Table func(site string, n *privacy.Noised) (t *Table, notes problem.List)
}

// Release prepares the release of tests of a model of some method. empty is a table of the
// model without tests, and scores writes those of a row's subject, in standard deviations of
// the factors, and says whether there are any.
func (p *Protocol) Release(method string, empty Table, scores func(row *dataset.Row, z []float64) bool) (*Release, error) {
	digest, err := p.digest(empty.Model)
	if err != nil {
		return nil, err
	}
	factors := len(empty.Reliability)
	sum, err := p.sum(factors)
	if err != nil {
		return nil, err
	}
	z := make([]float64, factors)
	return &Release{
		Study: privacy.Study{
			Digest: digest, Method: method, Sites: p.Sites, Quorum: p.Sites, Person: p.Privacy.Person,
			Guarantee: &privacy.Guarantee{Unit: privacy.Subject, Adjacency: p.Privacy.Adjacency, Budget: p.budget()},
			Requests: []privacy.Listed{{Kind: "associate", Times: 1, Request: privacy.Request{
				Protection: privacy.Differential, Contents: []privacy.Content{{What: sum.Name, Values: sum.Entries()}}, Sums: []privacy.Sum{sum},
			}}},
		},
		Contribution: func(row *dataset.Row, v []float64) int {
			if !scores(row, z) || !p.vector(row.Subject, z, v) {
				return -1
			}
			return 0
		},
		Table: func(site string, n *privacy.Noised) (*Table, problem.List) {
			t := empty
			t.Adjusted = slices.Sorted(slices.Values(p.Adjust))
			t.Privacy = &guarantee{Protocol: digest, Site: site, Sites: p.Sites, Adjacency: p.Privacy.Adjacency, Epsilon: p.Privacy.Epsilon, Delta: p.Privacy.Delta, NoiseSD: n.SD()}
			var notes problem.List
			t.Tests, t.Subjects, notes = p.tests(n, factors)
			return &t, notes
		},
	}, nil
}

// sum is what a site releases: Σ t tᵀ over its subjects, with t = (1, u, s z/R). u are the
// columns (vector), of which |(1, u)|² ≤ X² = 1 + their number, and z the scores,
// clipped to |z| ≤ R, beyond which one subject of the model in a thousand has them. With
// s = X half of |t|² is for the scores at most, which gives the products of scores and columns
// the least noise, and |t|² ≤ 2X². One subject more or less moves the sum by at most 2X² in
// Frobenius' norm, and one exchanged for another by √2 times that ([privacy.Moments]).
func (p *Protocol) sum(factors int) (privacy.Sum, error) {
	bound := math.Sqrt2 * p.longest()
	sum := privacy.Sum{
		Name: "products of scores and columns", Unit: privacy.Subject, Form: privacy.Moments, Blocks: []int{p.terms() + factors}, Bound: bound,
		Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: math.Sqrt2, Count: 1},
	}
	noise, err := account.Scale([]account.Mechanism{sum.Mechanism}, p.Privacy.Adjacency, p.budget())
	if err != nil {
		return sum, fmt.Errorf("calibrating the noise: %w", err)
	}
	sum.Mechanism.Noise = account.RoundUp(noise)
	return sum, nil
}

// longest is X, the largest norm of (1, u).
func (p *Protocol) longest() float64 { return math.Sqrt(float64(1 + len(p.Columns))) }

// radius is R, the norm that scores are clipped to.
func radius(factors int) float64 {
	return math.Sqrt(distuv.ChiSquared{K: float64(factors)}.Quantile(within))
}

// terms is how many entries 1 and u have.
func (p *Protocol) terms() int {
	n := 1
	for _, c := range p.Columns {
		n += c.terms()
	}
	return n
}

// terms is how many entries of u a column has: its number, or its levels but the first.
func (c *coding) terms() int { return max(1, len(c.Levels)-1) }

// vector writes what a subject adds to the sum into v: 1, then of each column the number,
// its range mapped to −1 to 1, or an indicator of each level but the first, and then the
// scores z, in standard deviations of the factors. It says whether the subject counts: who
// lacks a column does not.
func (p *Protocol) vector(cells []string, z, v []float64) bool {
	v[0] = 1
	at := 1
	for i, c := range p.Columns {
		if c.Range != nil {
			x, err := strconv.ParseFloat(cells[i], 64)
			if errors.Is(err, strconv.ErrSyntax) || math.IsNaN(x) {
				return false
			}
			low, high := c.Range[0], c.Range[1]
			v[at] = min(1, max(-1, (x-low/2-high/2)/(high/2-low/2)))
		} else if l := slices.Index(c.Levels, cells[i]); l < 0 {
			return false
		} else if l > 0 {
			v[at+l-1] = 1
		}
		at += c.terms()
	}
	norm, r := 0.0, radius(len(z))
	for _, x := range z {
		norm = math.Hypot(norm, x)
	}
	shrink := min(1, r/norm) // 1 where all are 0
	for a, x := range z {
		v[at+a] = p.longest() / r * shrink * x
	}
	return norm < math.Inf(1)
}
