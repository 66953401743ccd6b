package coordinator

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"parley/federation"
)

// Status is what a coordinator and its studies are doing. It is status.json, which
// the daemon writes. Its times are of this machine's clock.
type Status struct {
	Serving bool          `json:"serving"`
	Broker  string        `json:"broker"` // ok, or what is wrong with it
	Sites   []SiteStatus  `json:"sites"`
	Studies []StudyStatus `json:"studies"`
}

// SiteStatus is what is known of a site.
type SiteStatus struct {
	Site     string              `json:"site"`
	State    string              `json:"state"` // invited, joined, revoked
	Program  *federation.Program `json:"program,omitempty"`
	LastSeen *time.Time          `json:"last_seen,omitempty"`
	Took     float64             `json:"answer_seconds,omitempty"` // from a task to the last answer
	Text     string              `json:"text,omitempty"`           // what is wrong
	// Refused says that the broker refuses the site's key for a while: it took too much.
	Refused bool `json:"refused,omitempty"`
}

// StudyStatus is where a study stands.
type StudyStatus struct {
	Study    string          `json:"study"`
	Name     string          `json:"name"`
	Method   string          `json:"method"`
	State    string          `json:"state"`
	Text     string          `json:"text,omitempty"`
	Since    time.Time       `json:"since"`
	Round    int             `json:"round"`
	Progress int             `json:"progress"`
	Of       int             `json:"of"`
	Sites    []StandingState `json:"sites"`
}

// StandingState is where a site stands with a study, as the coordinator sees it.
type StandingState struct {
	Site  string `json:"site"`
	State string `json:"state"`
	Text  string `json:"text,omitempty"`
	// Since is when it came to that; nil if that is not known.
	Since *time.Time `json:"since,omitempty"`
}

// The states of a site in a study, beside the words of package federation.
const (
	NotJoined = "not joined"
	Unheard   = "not heard of"
	Asked     = "asked"     // a task is to be put for it
	Delivered = "delivered" // the broker keeps the task until the site fetches it
	Answered  = "answered"  // and waits for the others
	Left      = "left"
	HasAll    = "has the results"
	Told      = "was told" // that the study has ended without a result
	Misfit    = "must install"
)

// ReadStatus reads status.json, and adds sites and studies of which no daemon has said
// anything. Serving says whether one is alive.
func (f *Folder) ReadStatus() (s Status, err error) {
	if err := f.ReadJSON("status.json", &s); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	s.Serving = f.Served()
	r, err := f.Registry()
	if err != nil {
		return s, err
	}
	s.addSites(r)
	if s.Studies == nil {
		s.Studies = []StudyStatus{}
	}
	list, err := f.Studies()
	if err != nil {
		return s, err
	}
	for _, digest := range list {
		if slices.ContainsFunc(s.Studies, func(st StudyStatus) bool { return st.Study == digest }) {
			continue
		}
		state, err := f.loadState(digest)
		if err != nil {
			return s, err
		}
		st := StudyStatus{Study: digest, State: state.State, Text: state.Text, Sites: []StandingState{}}
		if p, err := f.Plan(digest); err != nil {
			st.Text = err.Error()
		} else {
			st.Name, st.Method = p.Name, p.Method.Name
		}
		s.Studies = append(s.Studies, st)
	}
	return s, nil
}

// addSites adds those who are invited and have not joined, and those who have joined and
// are not listed.
func (s *Status) addSites(r Registry) {
	if s.Sites == nil {
		s.Sites = []SiteStatus{}
	}
	listed := map[string]bool{}
	for _, st := range s.Sites {
		listed[st.Site] = true
	}
	add := func(site, state string) {
		if !listed[site] {
			listed[site] = true
			s.Sites = append(s.Sites, SiteStatus{Site: site, State: state})
		}
	}
	for _, m := range r.Members {
		state := "joined"
		if m.Revoked {
			state = "revoked"
		}
		add(m.Site, state)
	}
	for _, i := range r.Invitations {
		if i.UsedBy == "" {
			add(i.Site, "invited")
		}
	}
	slices.SortFunc(s.Sites, func(a, b SiteStatus) int { return strings.Compare(a.Site, b.Site) })
}

// writeStatus writes status.json if it has changed. Mostly it has not, and of many sites it takes long to encode.
func (d *Daemon) writeStatus(serving bool) (changed bool, err error) {
	s := d.status()
	s.Serving = serving
	if _, err := os.Stat(d.Folder.File("status.json")); err == nil && reflect.DeepEqual(s, d.wrote) {
		return false, nil
	}
	if err := d.Folder.WriteJSON("status.json", s); err != nil {
		return true, err
	}
	d.wrote = s
	return true, nil
}

func (d *Daemon) status() (s Status) {
	d.mu.Lock()
	s.Broker = "ok"
	if d.health != "" {
		s.Broker = d.health
	}
	members := slices.Collect(maps.Values(d.members))
	suspended := d.suspended // replaced, never changed
	d.mu.Unlock()
	for _, m := range members {
		m.mu.Lock()
		if m.joined != nil {
			st := SiteStatus{Site: m.site, State: "joined"}
			if m.joined.Revoked {
				st.State = "revoked"
			}
			st.Text = suspended[m.joined.User]
			if st.Refused = st.Text != ""; m.other() != nil {
				st.Text = m.twoServe()
			}
			if !m.seen.IsZero() {
				program, seen := m.hello.Program, m.seen.UTC().Truncate(time.Second)
				st.Program, st.LastSeen, st.Took = &program, &seen, time.Duration(m.took.Load()).Seconds()
			}
			s.Sites = append(s.Sites, st)
		}
		m.mu.Unlock()
	}
	if r, err := d.Folder.Registry(); err == nil {
		s.addSites(r)
	}
	for _, st := range d.running() {
		s.Studies = append(s.Studies, st.status())
	}
	return s
}

// status is where the study stands.
func (s *running) status() StudyStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := StudyStatus{Study: s.digest, State: s.state.State, Text: s.state.Text,
		Since: s.since.UTC().Truncate(time.Second), Round: s.round, Progress: s.progress[0], Of: s.progress[1]}
	if s.plan == nil {
		return out
	}
	if out.Text == "" {
		out.Text = s.waits()
	}
	out.Name, out.Method = s.plan.Name, s.plan.Method.Name
	for _, site := range s.plan.Sites {
		out.Sites = append(out.Sites, s.standing(site))
	}
	return out
}

// standing is where a site stands; the caller holds s.mu.
func (s *running) standing(site string) StandingState {
	out := StandingState{Site: site}
	at := func(state, text string, since time.Time) StandingState {
		out.State, out.Text = state, text
		if !since.IsZero() {
			t := since.UTC().Truncate(time.Second)
			out.Since = &t
		}
		return out
	}
	why, left := s.state.Left[site]
	if s.state.delivered(site) && s.state.State == Ended && !left {
		return at(HasAll, "", time.Time{})
	}
	s.daemon.mu.Lock()
	m := s.daemon.members[site]
	s.daemon.mu.Unlock()
	if m == nil {
		m = &member{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := s.links[site]
	word, known := m.words[s.digest]
	needs := ""
	if m.hello.Program.Version != "" {
		needs = s.misfit(m.hello.Program)
	}
	switch {
	case m.joined == nil && left:
		return at(Left, why, time.Time{})
	case m.joined == nil:
		return at(NotJoined, "", time.Time{})
	case m.joined.Revoked:
		return at("revoked", "", time.Time{})
	case left && (!known || word.Word != federation.Refused):
		return at(Left, why, time.Time{})
	case s.state.delivered(site) && !known: // of an end without a result
		return at(Told, "", time.Time{})
	case needs != "":
		return at(Misfit, needs, m.seen)
	case !known:
		return at(Unheard, "it has not said where it stands since this coordinator started", time.Time{})
	case l != nil && l.waiting != "":
		return at(federation.Unable, l.waiting, l.asked)
	case word.Word != federation.Approved && word.Word != federation.Computing:
		return at(word.Word, word.Text, word.since)
	case l != nil && !l.asked.IsZero() && word.Word == federation.Computing:
		return at(federation.Computing, "", word.since)
	case l != nil && !l.asked.IsZero() && l.stored:
		return at(Delivered, "", l.asked)
	case l != nil && !l.asked.IsZero():
		return at(Asked, "", l.asked)
	case l != nil && !l.answered.IsZero():
		return at(Answered, "", l.answered)
	}
	return at(word.Word, word.Text, word.since)
}
