// Package method is the contract between a method of learning and everything
// that runs it: the engine, the network, simulation, checkpoints and tests are
// written once, against these interfaces.
//
// A method is two pure state machines. The [Coordinator] holds the global
// state: Next moves it on and says what each site is to do, Fold takes in one
// contribution. The [Site] answers one task at a time from the site's own
// rows, through a [privacy.Session], and what it answers leaves through the
// gate. Neither half may read clocks, do I/O or use randomness that is not
// derived from the plan's seed, the site's name and the round, nor start
// goroutines, but to share out arithmetic within one call whose result does not
// depend on them: then checkpoints, replay and bit-identical results on any
// number of cores follow.
//
// State is what must be carried from one step to the next; [Info] is what may
// be looked at. What coordinators write again and again, asking sites and opening what
// they answer, is in [Ask], [Expect], [DecodeAnswer] and [Leave]; a site opens a task
// with [OpenTask] and ends with [AnswerTask]. Small interfaces say what a method may
// offer beside: how it is judged ([Evaluable], [Selector]), attacked ([Attackable]), and
// what a fitted [Model] can do.
package method

import (
	"context"
	"encoding"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/problem"
	"parley/study"
)

// Method is one way of learning, as the registry knows it.
type Method interface {
	// Name is what a plan writes under method.name.
	Name() string
	// Options returns a pointer to the method's options with every default
	// filled in, for the plan's decoder.
	Options() any
	// Revision is raised whenever the same plan and data would give other numbers
	// than before, or messages of another form. Both ends of a study must have the
	// same one.
	Revision() int
	// Requests lists everything that a site may be asked for over the whole study,
	// from the plan alone, and how often: the site's gate grants nothing else, and
	// the coordinator takes nothing else. A study may end earlier and ask for
	// less. The counts of numbers are upper bounds. An error is one of the plan.
	Requests(p *study.Plan, site string) ([]privacy.Listed, error)
	// Coordinator returns the coordinator's half for a checked plan.
	Coordinator(*study.Plan) (Coordinator, error)
	// Site returns one site's half for a checked plan. A half always sees the
	// same rows, so it may remember what one more reading would give again.
	Site(p *study.Plan, site string) (Site, error)
}

// State is a coordinator's state between two steps. Its encoding is
// deterministic and self-contained: a checkpoint holds nothing else of the method.
type State interface {
	encoding.BinaryMarshaler
}

// Coordinator is the global half. It is a value without state of its own:
// every method is a function of its arguments and the plan. A State passed in
// is not used again by the caller, so it may be changed and returned.
type Coordinator interface {
	// Init is the state before any task.
	Init() (State, error)
	// Restore decodes what a State's MarshalBinary wrote, and refuses all else: see [OpenState].
	Restore([]byte) (State, error)
	// Next moves the state on. It is called at the start, and again as soon as
	// the last Step's Wait is met. After a Step that was Done it is Done again.
	Next(State) (Step, error)
	// Fold takes in the answer to one task. It checks the answer whole: what it takes
	// in never makes a later Next fail. An error means that the site leaves; the
	// engine then goes on from the state as it was encoded before, so that Fold may
	// have changed the one passed in.
	Fold(State, Contribution) (State, error)
	// Leave records that a site will not answer its task, nor any later one:
	// its budget is spent, its policy refuses, or it failed for good. An error
	// ends the study.
	Leave(s State, site string) (State, error)
	// Result is what the study found. It is called when a Step was Done.
	Result(State) (*Result, error)
	// Share is what one site may have back at the end, for [Site.Report].
	Share(s State, site string) ([]byte, error)
}

// Wait says when a Step's tasks have been answered far enough to go on.
type Wait uint8

const (
	// All waits until every outstanding task is folded, in the order of the
	// plan's sites whatever the order of arrival (synchronous rounds).
	All Wait = iota
	// Any goes on after each folded contribution (asynchronous schedules): of the
	// outstanding tasks the one that is answered first, in simulations the one that
	// ends first by its Takes.
	Any
)

// Step is what Next decides.
type Step struct {
	State State
	Tasks []Task // none is legal: then Next is called again at once
	Wait  Wait
	Done  bool // nothing is left to do; Tasks is empty
	// Progress counts the steps of the study so far and in all; an estimate of
	// the latter is enough.
	Progress, Of int
	Info         Info
}

// Task is what one site is asked to do.
type Task struct {
	Site string // a site without an outstanding task
	Kind string // what is asked, in a word or two: shown in progress and logs
	Body []byte // the method's own encoding
	// Takes is how long the answer takes where time is simulated, from the moment
	// it is asked for, in a unit of the method's choice: not negative, and 0 for no
	// preference. Under [Any] answers are then folded in the order in which they
	// would arrive, those of one moment in the order of asking. Where sites are
	// asked over a network, real time decides.
	Takes float64
	// Optional says that the study goes on without the answer: a site that fails or
	// refuses leaves, as ever, but the plan's quorum does not count it as lost.
	Optional bool
}

// Contribution is the answer to one task. Its Body was written by another
// organisation: whatever is wrong with it must come back as an error.
type Contribution struct {
	Site string
	Kind string
	Body []byte
	// Sums are the noised sums that the site's session made, by name, each as
	// often as it was made, in that order. They have been held against what the
	// plan lists: number and lengths of blocks, step and noise. (Of the blocks that
	// were declared there may be only the first.)
	Sums map[string][]*privacy.Noised
	// Masked is what there is in place of Body and Sums where the plan has a secure sum: see [ForPlan].
	Masked *privacy.Masked
}

// Sum returns a noised sum that the site was to make once.
func (c Contribution) Sum(name string) (*privacy.Noised, error) {
	if n := len(c.Sums[name]); n != 1 {
		return nil, fmt.Errorf("%d sums %q, where one was asked for", n, name)
	}
	return c.Sums[name][0], nil
}

// Info is what may be looked at after a step: named numbers for logs, curves
// and tests, all finite. It never decides anything.
type Info map[string]float64

// All yields the entries in order of name.
func (i Info) All() iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for _, k := range slices.Sorted(maps.Keys(i)) {
			if !yield(k, i[k]) {
				return
			}
		}
	}
}

// Site is the half at one site.
type Site interface {
	// Run answers the task, which the plan lists for the site and which has been
	// paid for. Under differential protection the answer follows from the task and
	// the noised sums alone; the session itself puts those into the release.
	Run(context.Context, Task, *privacy.Session) (Answer, error)
	// Report is what the site's own people may see at the end: it may show
	// single subjects, and never leaves. shared is what [Coordinator.Share] gave.
	Report(ctx context.Context, shared []byte, data dataset.Source) (*Result, error)
}

// Answer is what a site's half says to a task.
type Answer struct {
	Body  []byte // what leaves beside the session's noised sums, in the method's own encoding
	State []byte // what the half wants back in the next session of the study; it stays at the site
}

// Result is what a study found, as data: files in open formats, numbers,
// figures and tables. Whoever draws or stores it needs to know no method.
type Result struct {
	Files   []File             // of the model, to be kept beside the report
	Metrics map[string]float64 // finite, dimension in the name where there is one
	Found   string             // what was found, in a sentence or two of plain words; may be empty
	Sure    string             // how sure that is and what it rests on; may be empty
	// what a reader should know first; how good a fit is says on which data, such as [OfFit]
	Headline []figure.Fact
	Sections []figure.Section // in reading order; their warnings are what [Result.Verdicts] says
}

// OfFit is for a headline's number on how well a model describes or predicts: the subjects took
// part in the fit, and others are described a little worse.
const OfFit = ", on the data of the fit"

// Verdicts are what speaks against relying on the result: the titles of the warnings in its
// sections, in reading order, so most severe first. There is no other list of them.
func (r *Result) Verdicts() (says []string) {
	for _, w := range figure.Warnings(r.Sections) {
		says = append(says, w.Title)
	}
	return says
}

// Numbers is what metrics.json holds of a result: its metrics, and the verdicts, if there
// are any, under "verdicts".
func (r *Result) Numbers() map[string]any {
	numbers := map[string]any{}
	for name, x := range r.Metrics {
		numbers[name] = x
	}
	if says := r.Verdicts(); len(says) > 0 {
		numbers["verdicts"] = says
	}
	return numbers
}

// File is one file of a result: Data, or what Write writes where that may be
// too much to hold. Write may read the data that the result was made from.
type File struct {
	Name  string // a relative path with forward slashes
	Data  []byte
	Write func(io.Writer) error // nil if Data is the content
}

// Stream writes the content of the file.
func (f File) Stream(w io.Writer) error {
	if f.Write != nil {
		return f.Write(w)
	}
	_, err := w.Write(f.Data)
	return err
}

// Registry is the methods that a program knows, in the order given.
type Registry []Method

// Lookup returns the method of that name.
func (r Registry) Lookup(name string) (Method, bool) {
	i := slices.IndexFunc(r, func(m Method) bool { return m.Name() == name })
	if i < 0 {
		return nil, false
	}
	return r[i], true
}

// Names lists the methods.
func (r Registry) Names() []string {
	names := make([]string, len(r))
	for i, m := range r {
		names[i] = m.Name()
	}
	return names
}

// Options implements the plan decoder's view of the registry.
func (r Registry) Options(name string) (any, bool) {
	m, ok := r.Lookup(name)
	if !ok {
		return nil, false
	}
	return m.Options(), true
}

// Selective is a method in whose private studies a subject counts only with the views that the plan states.
type Selective interface {
	Method
	// Counts says whether a subject of a site counts in a checked plan; views are its values, nil of a view that it
	// lacks.
	Counts(p *study.Plan, site string, views [][]float64) (bool, error)
}

// Describer is a method that can say to people what it would do.
type Describer interface {
	Method
	// Describe says in one or two plain sentences what a checked plan computes, and
	// what sites do for it.
	Describe(p *study.Plan) string
}

// Cost returns what a checked plan promises and what it costs each site. A
// plan that its method cannot keep is an error.
func (r Registry) Cost(p *study.Plan) (*ledger.Cost, error) {
	m, ok := r.Lookup(p.Method.Name)
	if !ok {
		return nil, fmt.Errorf("method %q is not known", p.Method.Name)
	}
	return ledger.CostOf(p, func(site string) ([]privacy.Request, error) {
		list, err := ForPlan(m, p).Requests(p, site)
		return privacy.Requests(list), err
	})
}

// Noter is a method that knows of plans which are in order, and which nobody should
// run without having read a word of warning.
type Noter interface {
	Method
	// Notes says what to know of a checked plan; nil if there is nothing.
	Notes(p *study.Plan) problem.List
}

// Notes returns what a checked plan's method has to say of it.
func (r Registry) Notes(p *study.Plan) (problem.List, error) {
	m, ok := r.Lookup(p.Method.Name)
	if !ok {
		return nil, fmt.Errorf("method %q is not known", p.Method.Name)
	}
	var notes problem.List
	if n, ok := m.(Noter); ok {
		notes = n.Notes(p)
	}
	if len(p.Sites) == 0 {
		return notes, nil
	}
	list, err := ForPlan(m, p).Requests(p, p.Sites[0])
	for _, r := range list {
		if n := ledger.NumbersOf(r.Request); ledger.BytesOf(r.Request) > wire.MaxBytes {
			notes.Add(problem.Problem{Where: "method",
				What: fmt.Sprintf("a release for the task %q may have more than %d million numbers, and none has more "+
					"than %d MiB", r.Kind, n/1e6, wire.MaxBytes>>20),
				Hint: "take fewer features: what two of them have to do with each other is a number of its own"})
		}
	}
	return notes, err
}

// Paper is what the methods section of a paper would say of a study, and what it would cite.
type Paper struct {
	Text       string   // of the model and how it is fitted, in plain sentences
	References []string // each with its DOI
}

// Citable is a method that can say what a paper would.
type Citable interface {
	Method
	// Paper is of a checked plan.
	Paper(p *study.Plan) Paper
}

// Paper is what a paper would say of a checked plan; empty if its method does not tell.
func (r Registry) Paper(p *study.Plan) (text Paper) {
	m, _ := r.Lookup(p.Method.Name)
	c, ok := m.(Citable)
	if !ok {
		return text
	}
	if text = c.Paper(p); p.Privacy.Differential() {
		text.References = append(text.References, noise)
	}
	return text
}

// noise is what all noised sums are made by.
const noise = "Canonne C, Kamath G, Steinke T. The discrete Gaussian for differential privacy. Advances in Neural " +
	"Information Processing Systems 33, 2020. doi:10.48550/arXiv.2004.00010"
