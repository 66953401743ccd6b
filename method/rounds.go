package method

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/figure"
	"parley/internal/wire"
	"parley/privacy"
	"parley/study"
)

// Done is the phase after the last task. The others are named by the task whose
// answers they wait for, and "" is the start.
const Done = "done"

// Draws returns the random numbers of a purpose, which the format and what it prints name, the plan's seed among it:
// nothing else decides them.
func Draws(format string, of ...any) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, format, of...))))
}

// Staying lists the sites that have not left, in the order of sites. It is a new slice.
func Staying(sites, left []string) []string {
	return slices.DeleteFunc(slices.Clone(sites), func(site string) bool { return slices.Contains(left, site) })
}

// Leave returns left with the site added; an error if it is none of the sites.
func Leave(sites, left []string, site string) ([]string, error) {
	if err := Member(sites, site); err != nil {
		return nil, err
	}
	return append(left, site), nil
}

// Member reports a site that is none of the sites.
func Member(sites []string, site string) error {
	if !slices.Contains(sites, site) {
		return fmt.Errorf("%q is not a site of this study", site)
	}
	return nil
}

// Ask makes a task of one kind for each of the sites, with the body that is encoded
// for it.
func Ask(kind string, sites []string, body func(site string) (any, error)) ([]Task, error) {
	var tasks []Task
	for _, site := range sites {
		b, err := body(site)
		if err != nil {
			return nil, err
		}
		data, err := wire.Marshal(b)
		if err != nil {
			return nil, fmt.Errorf("encoding task %q: %w", kind, err)
		}
		tasks = append(tasks, Task{Site: site, Kind: kind, Body: data})
	}
	return tasks, nil
}

// Optional marks tasks as ones that the study goes on without.
func Optional(tasks []Task) []Task {
	for i := range tasks {
		tasks[i].Optional = true
	}
	return tasks
}

// sealed is an encoded state and its SHA-256.
type sealed struct {
	State  wire.Raw `cbor:"state"`
	SHA256 []byte   `cbor:"sha256"`
}

// SealState encodes a state, so that [OpenState] tells whether anything was damaged since.
func SealState(x any) ([]byte, error) {
	data, err := wire.Marshal(x)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return wire.Marshal(sealed{data, sum[:]})
}

// OpenState decodes what [SealState] made to x, a pointer, and refuses anything else. So [Coordinator] Restore takes
// only what a coordinator has checked before it was sealed.
func OpenState(data []byte, x any) error {
	var s sealed
	if err := wire.Unmarshal(data, &s); err != nil {
		return err
	}
	if sum := sha256.Sum256(s.State); !bytes.Equal(sum[:], s.SHA256) {
		return fmt.Errorf("the state is damaged: its SHA-256 is another than when it was encoded")
	}
	return wire.Unmarshal(s.State, x)
}

// Expect reports an answer of nobody of the sites, or to another task than the study
// waits for.
func Expect(in Contribution, sites []string, phase string) error {
	if err := Member(sites, in.Site); err != nil {
		return err
	}
	if in.Kind != phase {
		return fmt.Errorf("an answer to %q while the study waits for %q", in.Kind, phase)
	}
	return nil
}

// Once reports an answer of a site that has answered already.
func Once(in Contribution, answered bool) error {
	if answered {
		return fmt.Errorf("site %s has already answered", in.Site)
	}
	return nil
}

// DecodeAnswer decodes an answer's body to a, a pointer. Its numbers are unchecked.
func DecodeAnswer(in Contribution, a any) error {
	if err := wire.Unmarshal(in.Body, a); err != nil {
		return fmt.Errorf("decoding the answer to %q: %w", in.Kind, err)
	}
	return nil
}

// Take keeps a site's only answer to a task, if its body decodes to one that check takes.
func Take[A any](kept map[string]*A, in Contribution, check func(*A) error) error {
	if err := Once(in, kept[in.Site] != nil); err != nil {
		return err
	}
	a := new(A)
	if err := DecodeAnswer(in, a); err != nil {
		return err
	}
	if err := check(a); err != nil {
		return err
	}
	kept[in.Site] = a
	return nil
}

// OnlySum returns the noised sum that is all of an answer; an error if there is a body
// beside it, which would be exact.
func OnlySum(in Contribution, name string) (*privacy.Noised, error) {
	sum, err := in.Sum(name)
	if len(in.Body) == 0 {
		return sum, err
	}
	beside := fmt.Errorf("the answer to %q has a body beside its noised sum", in.Kind)
	if err != nil { // which says what is there in place of the sum
		return nil, fmt.Errorf("%w: %w", beside, err)
	}
	return nil, beside
}

// OpenTask decodes a task's body to task, a pointer. Its numbers are unchecked.
func OpenTask(t Task, task any) error {
	if err := wire.Unmarshal(t.Body, task); err != nil {
		return fmt.Errorf("decoding task %q: %w", t.Kind, err)
	}
	return nil
}

// AnswerTask encodes what a site's half says to a task; nil where the session's noised
// sums are all of it. State is what the half wants back in its next session.
func AnswerTask(t Task, answer any, state []byte) (Answer, error) {
	a := Answer{State: state}
	if answer == nil {
		return a, nil
	}
	var err error
	if a.Body, err = wire.Marshal(answer); err != nil {
		return Answer{}, fmt.Errorf("encoding the answer to %q: %w", t.Kind, err)
	}
	return a, nil
}

// Overview is the section of a report that says who has what.
func Overview(p *study.Plan, sites []figure.SiteSubjects) figure.Section {
	o := figure.Overview{Sites: sites}
	lacking, noise := "", ""
	for _, v := range p.Views {
		o.Views = append(o.Views, figure.ViewSize{Name: v.Name, Features: len(v.Features)})
	}
	for _, s := range sites {
		if slices.ContainsFunc(s.Patterns, func(p figure.Pattern) bool { return slices.Contains(p.Present, false) }) {
			lacking = " Hatched parts lack the view."
		}
		if s.Noise > 0 {
			noise = " Counts hold privacy noise: ± is one standard deviation of it, and a count that noise took " +
				"below 0 stands at 0."
		}
	}
	return figure.Section{ID: "data", Title: "Who has what", Items: []figure.Item{{Figure: &figure.Figure{
		ID: "overview", Title: "Subjects by site and view", Chart: o,
		Caption: "A bar is as long as the site has subjects. d is the number of features, n that of subjects." +
			lacking + noise,
		Alt: "For every site and view, how many subjects have the view and how many lack it.",
	}}}}
}

// Complete counts a site's subjects where all of them have all views; sd is the standard
// deviation of the noise in the count, 0 if there is none.
func Complete(p *study.Plan, site string, subjects, sd float64) figure.SiteSubjects {
	present := make([]bool, len(p.Views))
	for k := range present {
		present[k] = true
	}
	return figure.SiteSubjects{Name: site, Noise: sd,
		Patterns: []figure.Pattern{{Present: present, Subjects: int(math.Round(max(subjects, 0)))}}}
}

// Inbox is what sites have answered, by name, until all have.
type Inbox map[string]answered

// answered is a site's answer as it is kept: decoded, or in its encoding since the state was restored.
type answered struct {
	value any
	kept  wire.Raw
}

// MarshalCBOR encodes the answer.
func (a answered) MarshalCBOR() ([]byte, error) {
	if a.value == nil {
		return a.kept, nil
	}
	return wire.Marshal(a.value)
}

// UnmarshalCBOR keeps the encoding until it is known of what.
func (a *answered) UnmarshalCBOR(data []byte) error { return a.kept.UnmarshalCBOR(data) }

// Received decodes and checks an answer, and returns a pointer to it.
func Received[A any](in Contribution, check func(*A) error) (any, error) {
	x := new(A)
	if err := DecodeAnswer(in, x); err != nil {
		return nil, err
	}
	return x, check(x)
}

// Keep puts in an answer of a site, a pointer that nobody changes any more.
func (b Inbox) Keep(site string, x any) { b[site] = answered{value: x} }

// Answers are those of some sites, in their order.
func Answers[A any](b Inbox, sites []string) (all []*A, err error) {
	for _, site := range sites {
		a, ok := b[site]
		if !ok {
			return nil, fmt.Errorf("site %s has not answered", site)
		}
		x, ok := a.value.(*A)
		if !ok {
			x = new(A)
			if err := wire.Unmarshal(a.kept, x); err != nil {
				return nil, fmt.Errorf("site %s: decoding what it said: %w", site, err)
			}
		}
		all = append(all, x)
	}
	return all, nil
}
