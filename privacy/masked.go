package privacy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/internal/wire"
	"parley/privacy/account"
	"parley/privacy/masks"
)

// Masked is what a masked release holds: the site's vector under its masks, and the site's word that it is its own.
type Masked struct {
	Sum    masks.Sum    // which sum it is part of
	Signed masks.Signed // the site's signature, over all of it
	Vector masks.Vector // of Sum.Shape
}

// sentMasked is [Masked] as it travels. The rest follows from the release and from what was declared.
type sentMasked struct {
	Common    []byte `cbor:"common"` // digest of the task without the site's name
	Site      int    `cbor:"site"`
	Key       []byte `cbor:"key"`
	Signature []byte `cbor:"signature"`
	Words     []byte `cbor:"words"`
}

// Shape is the layout of a masked release: each sum as often as it is granted, block by block, then the totals.
func (r Request) Shape() (shape masks.Shape) {
	for _, s := range r.Sums {
		n := account.MultiplyCounts(s.Entries(), s.Mechanism.Count)
		shape = append(shape, masks.Block{Numbers: n, Words: 1})
	}
	for _, t := range r.Totals {
		shape = append(shape, masks.Block{Numbers: t.Numbers, Words: t.Grid.Words})
	}
	return shape
}

// Total makes exact numbers part of the session's masked release, as the request declared them under name. An
// error tells that a number is too large for the grid, and nothing else of it.
func (s *Session) Total(name string, numbers []float64) error {
	i := slices.IndexFunc(s.request.Totals, func(t Total) bool { return t.Name == name })
	switch {
	case i < 0:
		return fmt.Errorf("the request declared no total %q", name)
	case s.ended:
		return fmt.Errorf("total %q: %w", name, errEnded)
	case s.totals[name] != nil:
		return fmt.Errorf("total %q has been made", name)
	case len(numbers) != s.request.Totals[i].Numbers:
		return fmt.Errorf("total %q: %d numbers, and %d were declared", name, len(numbers), s.request.Totals[i].Numbers)
	}
	v, err := s.request.Totals[i].Grid.Vector(numbers)
	if err != nil {
		return fmt.Errorf("total %q: %w", name, err)
	}
	if s.totals == nil {
		s.totals = map[string]masks.Vector{}
	}
	s.totals[name] = v
	return nil
}

// MaskFor names who opens the total that the session's release is part of, as places among the plan's sites: the plan's
// openers, or its spare in the place of one.
func (s *Session) MaskFor(openers []int) error {
	if s.gate.study.Party == nil {
		return errKeyless
	}
	_, err := s.gate.study.Party.With(openers)
	s.openers = openers
	return err
}

// mask makes one vector of all that the session has made, and masks it.
func (s *Session) mask() (*sentMasked, error) {
	party := s.gate.study.Party
	if party == nil {
		return nil, errKeyless
	}
	if s.openers != nil {
		by := *party
		by.Openers, party = s.openers, &by
	}
	shape := s.request.Shape()
	v := make(masks.Vector, 0, shape.Words())
	for i, sum := range s.request.Sums {
		made := 0
		for _, m := range s.made {
			if m.Sum != i {
				continue
			}
			made++
			for _, block := range m.Blocks {
				for _, x := range block {
					v = append(v, uint64(x))
				}
			}
		}
		if made != sum.Mechanism.Count {
			return nil, fmt.Errorf("sum %q was made %d times, and %d were declared: a masked release has all of them",
				sum.Name, made, sum.Mechanism.Count)
		}
	}
	for _, t := range s.request.Totals {
		if s.totals[t.Name] == nil {
			return nil, fmt.Errorf("total %q was not made", t.Name)
		}
		v = append(v, s.totals[t.Name]...)
	}
	signed, err := party.Mask(s.ask.sum(shape), s.key, v)
	if err != nil {
		return nil, err
	}
	return &sentMasked{Common: s.ask.Common[:], Site: signed.Site, Key: signed.Key, Signature: signed.Signature,
		Words: v.Bytes()}, nil
}

func (a Ask) sum(shape masks.Shape) masks.Sum {
	return masks.Sum{Study: a.Study, Round: a.Round, Task: a.Common, Shape: shape}
}

// masked decodes what a masked release holds.
func (r Request) masked(a Ask, raw wire.Raw) (*Masked, error) {
	if raw == nil {
		return nil, errors.New("it holds nothing masked")
	}
	var m sentMasked
	if err := wire.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("its masked vector: %w", err)
	}
	if len(m.Common) != sha256.Size {
		return nil, fmt.Errorf("its masked vector: a digest of %d bytes", len(m.Common))
	}
	a.Common = [32]byte(m.Common)
	out := &Masked{Sum: a.sum(r.Shape())}
	var err error
	if out.Vector, err = out.Sum.Shape.Vector(m.Words); err != nil {
		return nil, err
	}
	out.Signed = masks.Signed{Site: m.Site, Key: m.Key, Digest: out.Vector.Digest(), Signature: m.Signature}
	return out, nil
}

var errKeyless = errors.New("a masked release at a site without keys")

// mostTotal is beyond every noised sum, which package fixed keeps to 62 bits before noise.
const mostTotal = 3 << 61

// Unmasked reads a total over sites: what the request's sums and totals come to, of so many sites. Of a noised sum
// the noise is that of all of them together.
func (r Request) Unmasked(v masks.Vector,
	sites int) (sums map[string][]*Noised, totals map[string][]float64, err error) {
	if n := r.Shape().Words(); len(v) != n {
		return nil, nil, fmt.Errorf("a total of %d words, and %d were declared", len(v), n)
	}
	sums, totals = map[string][]*Noised{}, map[string][]float64{}
	for _, s := range r.Sums {
		grid, err := s.grid()
		if err != nil {
			return nil, nil, err
		}
		for range s.Mechanism.Count {
			n := &Noised{step: grid.Step, sd: grid.SD() * math.Sqrt(float64(sites)),
				times: math.Sqrt(float64(sites) / float64(max(s.Honest, 1)))}
			for i := range s.Blocks {
				block := make([]int64, s.entries(i))
				for j := range block {
					if block[j] = int64(v[j]); block[j] > mostTotal || block[j] < -mostTotal {
						return nil, nil, fmt.Errorf("a total of sum %q is larger than any rows have", s.Name)
					}
				}
				n.blocks, v = append(n.blocks, block), v[len(block):]
			}
			if err := n.check(s); err != nil {
				return nil, nil, err
			}
			sums[s.Name] = append(sums[s.Name], n)
		}
	}
	for _, t := range r.Totals {
		own := v[:t.Numbers*t.Grid.Words]
		if totals[t.Name], err = t.Grid.Numbers(own, sites); err != nil {
			return nil, nil, err
		}
		v = v[len(own):]
	}
	return sums, totals, nil
}

// Opening is what an opener is asked: the sum, and whose masked vectors are in its total.
type Opening struct {
	Sum masks.Sum      `cbor:"sum"`
	Set []masks.Signed `cbor:"set"`
}

// Vet fills in what an opener's task asks for, which it holds against the plan and against what this site has
// sent, before anything is charged. Any other task it leaves as it is. A [*RefusalError] says why it will not
// be answered.
func (g *Gate) Vet(a Ask, body []byte) (Ask, error) {
	r, err := g.listed(a)
	if err != nil || r.Opens == 0 {
		return a, nil // whatever is wrong with the task, Check says
	}
	var o Opening
	if err := wire.Unmarshal(body, &o); err != nil {
		return a, refusal(fmt.Sprintf("the task to open a sum cannot be read: %v", err))
	}
	own, err := g.opens(r, &o)
	if err != nil {
		return a, err
	}
	if err := g.study.Party.Opens(o.Sum, o.Set, own); err != nil {
		return a, refusal(err.Error())
	}
	var set []string
	for _, s := range o.Set {
		set = append(set, strconv.Itoa(s.Site))
	}
	a.Opens, a.Set = o.Sum.Round, strings.Join(set, ",")
	return a, nil
}

// allowOpening says what speaks against opening a sum, by what the ledger has of earlier ones: each is opened
// for one set, and while it is the study's last; and where totals are exact all are of the same sites, since
// two that differ by a site would tell that site's sum.
func (g *Gate) allowOpening(no *RefusalError, a Ask) {
	by, opened := g.book.opened[a.Opens]
	switch {
	case a.Opens < 1:
		no.add("", "the task to open a sum names none", "")
	case opened && by != a.release():
		no.add("", fmt.Sprintf("the sum of round %d has been opened before: each is opened once", a.Opens), "")
	case a.Opens != g.book.masked:
		no.add("", fmt.Sprintf("the sum of round %d is not the last that this site has answered", a.Opens), "")
	case !g.study.Noised() && g.book.set != "" && g.book.set != a.Set:
		no.add("", "the first exact total of the study was over other sites, and the difference would be theirs alone",
			"")
	}
}

// Unmask makes the session's release of this site's masks over the set, and of nothing else.
func (s *Session) Unmask(body []byte) ([]byte, error) {
	if s.request.Opens == 0 {
		return nil, errors.New("the session was not granted for opening a sum")
	}
	var o Opening
	if err := wire.Unmarshal(body, &o); err != nil {
		return nil, err
	}
	own, err := s.gate.opens(s.request, &o)
	if err != nil {
		return nil, err
	}
	v, err := s.gate.study.Party.Unmask(o.Sum, o.Set, own)
	return v.Bytes(), err
}

// opens reports why a sum will not be opened for any set, and returns the digest of what this site has sent for it.
func (g *Gate) opens(r Request, o *Opening) (own [32]byte, err error) {
	switch {
	case g.study.Party == nil:
		return own, refusal("this site has no keys of the study")
	case o.Sum.Study != g.study.Digest:
		return own, refusal("the sum is of another study")
	case o.Sum.Round < 1:
		return own, refusal("the sum is of no round")
	}
	if o.Sum.Shape.Check() != nil || o.Sum.Shape.Words() > r.Opens {
		return own, refusal(fmt.Sprintf("the sum is none of the plan's, which have at most %d words", r.Opens))
	}
	sent, err := g.sent(o.Sum.Round)
	if err != nil {
		return own, err
	}
	if sent == nil || !sent.Sum.Same(o.Sum) {
		return own, refusal(fmt.Sprintf("this site has answered no such task in round %d, or its store was put back "+
			"since", o.Sum.Round))
	}
	return sent.Signed.Digest, nil
}

// sent is what this site has sent masked in a round; nil if it has sent nothing masked.
func (g *Gate) sent(round int) (*Masked, error) {
	a := Ask{Study: g.study.Digest, Site: g.study.Site, Round: round}
	r, _, err := g.journal.Release(a.release())
	if err != nil || r.Sealed == nil {
		return nil, err
	}
	o, _, err := open(r.Sealed, nil)
	return o.Masked, err
}

func refusal(what string) error {
	no := &RefusalError{}
	no.add("", what, "")
	return no.err()
}
