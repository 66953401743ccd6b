package evaluate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/problem"
)

// Scheme is the way of appendix C of Partitioned Variational Inference to make
// sites unequal: the first half of them small, the second half large, with Rho
// for how far their sizes differ and Kappa for how far the two classes of the
// subjects' groups do. It is what scenario [Unequal] needs to know.
type Scheme struct {
	Rho   float64 // 0: equal sizes; 1: small sites have nobody
	Kappa float64 // 0: classes as everywhere; 1: the larger class alone at small sites; below 0: more of the smaller one there
}

// schemes are the paper's four, of ten sites each (Table 1).
var schemes = [...]struct {
	name string
	Scheme
}{
	{"A", Scheme{0, 0}},
	{"B", Scheme{0.9, 0.95}},
	{"C", Scheme{0.7, -3}},
	{"D", Scheme{0.6, -1.5}},
}

// ParseScheme returns the paper's scheme of that name, A to D in any case.
func ParseScheme(name string) (Scheme, error) {
	var names []string
	for _, s := range schemes {
		if strings.EqualFold(name, s.name) {
			return s.Scheme, nil
		}
		names = append(names, s.name)
	}
	return Scheme{}, fmt.Errorf("scheme %q: unknown; use one of %s", name, strings.Join(names, ", "))
}

// SchemeOf returns the scheme of that name, or, where the name is "", that of
// the parameters.
func SchemeOf(name string, rho, kappa float64) (Scheme, error) {
	if name == "" {
		return Scheme{rho, kappa}, nil
	}
	return ParseScheme(name)
}

// String returns both parameters.
func (s Scheme) String() string { return fmt.Sprintf("rho %v, kappa %v", s.Rho, s.Kappa) }

// Shares are the numbers of subjects that a scheme comes to.
type Shares struct {
	Small, Large     int     // subjects of each small and each large site
	Majority         float64 // share of the larger class among all subjects, λ
	Target           float64 // the same that is aimed at for small sites, λ + (1−λ)κ
	SmallMajority    int     // subjects of the larger class at each small site
	SmallMinority    int     // the same of the smaller class
	Unused           int     // subjects that no site is given, fewer than there are sites
	MinoritySmall    float64 // share of the smaller class at small sites; NaN if they have nobody
	MinorityLeft     float64 // the same of what is left for large sites; NaN if nobody is
	enoughOfBothLeft bool
}

// Shares works out a scheme for n subjects, of whom majority are of the larger
// class: ⌊(1−ρ)n/M⌋ at each small of M sites, ⌊(1+ρ)n/M⌋ at each large one. A
// scheme that these subjects cannot fill has shares all the same: see
// [Shares.Valid].
func (s Scheme) Shares(sites, n, majority int) (Shares, error) {
	if sites < 2 || sites%2 != 0 {
		return Shares{}, fmt.Errorf("%d sites: want an even number, half of them small and half large", sites)
	}
	if !(s.Rho >= 0 && s.Rho <= 1) || math.IsNaN(s.Kappa) || math.IsInf(s.Kappa, 0) {
		return Shares{}, fmt.Errorf("%v: want rho between 0 and 1 and kappa finite", s)
	}
	if majority < 0 || majority > n || n == 0 {
		return Shares{}, fmt.Errorf("%d of %d subjects in the larger class", majority, n)
	}
	m, half := float64(sites), sites/2
	h := Shares{Small: int(math.Floor((1 - s.Rho) * float64(n) / m)), Large: int(math.Floor((1 + s.Rho) * float64(n) / m))}
	h.Majority = float64(majority) / float64(n)
	h.Target = h.Majority + (1-h.Majority)*s.Kappa
	h.SmallMajority = int(math.Floor(float64(h.Small) * h.Target))
	h.SmallMinority = h.Small - h.SmallMajority
	h.Unused = n - half*(h.Small+h.Large)
	left := n - half*h.Small
	h.MinoritySmall = float64(h.SmallMinority) / float64(h.Small)
	h.MinorityLeft = float64(n-majority-half*h.SmallMinority) / float64(left)
	h.enoughOfBothLeft = half*h.SmallMajority <= majority && half*h.SmallMinority <= n-majority
	return h, nil
}

// Valid says whether there are enough subjects of both classes, and no site
// would need less than none.
func (h *Shares) Valid() bool {
	return h.SmallMajority >= 0 && h.SmallMinority >= 0 && h.Unused >= 0 && h.enoughOfBothLeft
}

// Assign spreads subjects over sites as [Assign] does: the first half of the
// sites are the small ones. The groups are the two classes; of two equally large
// ones the first in ascending order counts as the larger. Large sites draw from
// everybody who is left. Subjects that the roundings leave over, [Shares.Unused],
// have no placement.
//
// It is an error if an id is repeated, if there are not two groups or a subject
// has none, if the number of sites is odd, if there are too few subjects of a
// class, and if a site would get no subject.
func (s Scheme) Assign(subjects []Subject, sites []string, seed uint64) ([]Placement, error) {
	subjects, others := together(subjects)
	byGroup, levels, err := stratify(subjects, seed, "site")
	if err != nil {
		return nil, s.refuse(err.Error(), "")
	}
	if ids := byGroup[""]; len(ids) > 0 {
		return nil, s.refuse(fmt.Sprintf("subject %s has no group", slices.Min(ids)), "")
	}
	if len(levels) != 2 {
		return nil, s.refuse(fmt.Sprintf("needs a column with two values, found %d%s", len(levels), some(levels)),
			"name a column with two values, or values to leave out as unused")
	}
	if len(byGroup[levels[1]]) > len(byGroup[levels[0]]) {
		slices.Reverse(levels)
	}
	h, err := s.Shares(len(sites), len(subjects), len(byGroup[levels[0]]))
	if err != nil {
		return nil, s.refuse(err.Error(), "")
	}
	if err := s.fits(h, byGroup, levels, len(sites)); err != nil {
		return nil, err
	}
	half := len(sites) / 2
	var placed []Placement
	var left []Subject
	for class, each := range []int{h.SmallMajority, h.SmallMinority} {
		ids, next := byGroup[levels[class]], 0
		placed = block{0, half}.deal(placed, ids[:half*each], &next)
		for _, id := range ids[half*each:] {
			left = append(left, Subject{ID: id})
		}
	}
	// Another order: in the first, who is left of each class comes last.
	mixed, _, err := stratify(left, seed, "large site")
	if err != nil {
		return nil, s.refuse(err.Error(), "")
	}
	next := 0
	placed = block{half, len(sites)}.deal(placed, mixed[""][:half*h.Large], &next)
	return joined(placed, others), nil
}

// fits says what keeps subjects from being spread by the shares, and what would
// help.
func (s Scheme) fits(h Shares, byGroup map[string][]string, levels []string, sites int) error {
	larger, smaller := len(byGroup[levels[0]]), len(byGroup[levels[1]])
	switch {
	case h.Small == 0 || h.Large == 0:
		return s.refuse(fmt.Sprintf("no subject for each of %d small sites with rho %v (%d subjects)", sites/2, s.Rho, larger+smaller), "a smaller rho, or fewer sites")
	case h.Target < 0 || h.Target > 1:
		return s.refuse(fmt.Sprintf("with kappa %v, %.0f %% of the subjects of a small site would be of the larger class, %q", s.Kappa, 100*h.Target, levels[0]),
			fmt.Sprintf("kappa from %.2f to 1 with these subjects", math.Ceil(-100*float64(larger)/float64(smaller))/100))
	case !h.Valid():
		return s.refuse(fmt.Sprintf("with %v, each of %d small sites would have %d subjects of %q and %d of %q; there are %d and %d", s,
			sites/2, h.SmallMajority, levels[0], h.SmallMinority, levels[1], larger, smaller), "rho nearer 1 makes small sites smaller; kappa nearer 0 their classes more like everybody's")
	}
	return nil
}

func (s Scheme) refuse(what, hint string) error {
	return problem.Problem{Where: "scenario " + Unequal.String(), What: what, Hint: hint}
}

// some returns a few levels after a colon.
func some(levels []string) string {
	const few = 5
	switch {
	case len(levels) == 0:
		return ""
	case len(levels) > few:
		return ": " + strings.Join(levels[:few], ", ") + ", …"
	}
	return ": " + strings.Join(levels, ", ")
}
