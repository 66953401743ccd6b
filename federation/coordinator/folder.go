// Package coordinator is a coordinator's folder, which [Init] makes and [Open] opens, and
// the [Daemon] that serves the studies in it.
//
// The folder is the whole interface between the two: commands change its files,
// whether the daemon runs or not, and the daemon looks at them. What a command
// asked for is durable when it returns.
package coordinator

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"parley/engine/nats"
	"parley/engine/wire"
	"parley/federation"
	"parley/internal/files"
	"parley/method"
	"parley/problem"
	"parley/study"
)

// Config is where a coordinator is reached. It is coordinator.json.
type Config struct {
	Version int `json:"version"`
	// Listen and WebSocket are host:port of the embedded broker, for NATS and for
	// WebSocket, both with TLS; empty: not offered.
	Listen    string `json:"listen,omitempty"`
	WebSocket string `json:"websocket,omitempty"`
	// Hosts are the names and addresses under which sites reach this machine.
	Hosts []string `json:"hosts,omitempty"`
	// NATS are the servers of a cluster that somebody else runs, instead of the
	// embedded broker, which keeps each value Replicas times; Roots, as PEM, is what
	// their certificates are held against, empty for the system's.
	NATS     []string `json:"nats,omitempty"`
	Replicas int      `json:"replicas,omitempty"`
	Roots    string   `json:"roots,omitempty"`
}

const configVersion = 1

// URLs are where sites connect to.
func (c Config) URLs() (urls []string) {
	if len(c.NATS) > 0 {
		return c.NATS
	}
	for _, way := range []struct{ scheme, address string }{{"tls", c.Listen}, {"wss", c.WebSocket}} {
		if _, port, err := net.SplitHostPort(way.address); err == nil {
			for _, h := range c.Hosts {
				urls = append(urls, way.scheme+"://"+net.JoinHostPort(h, port))
			}
		}
	}
	return urls
}

func (c Config) check() error {
	if c.Version != configVersion {
		return fmt.Errorf("version %d of coordinator.json is not known\n  hint: this program reads version %d",
			c.Version, configVersion)
	}
	if len(c.NATS) > 0 {
		return nil
	}
	if len(c.Hosts) == 0 || c.Listen == "" && c.WebSocket == "" {
		return errors.New("a coordinator needs a name or address under which sites reach it, and a port\n  hint: " +
			"such as --host coordinator.example.org --listen :4222 --websocket :443")
	}
	for _, a := range []string{c.Listen, c.WebSocket} {
		if _, port, err := net.SplitHostPort(a); a != "" && (err != nil || port == "" || port == "0") {
			return fmt.Errorf("%q is not an address to listen at\n  hint: such as :4222 or 10.0.0.5:4222; sites must "+
				"know the port beforehand", a)
		}
	}
	return nil
}

// Folder is a coordinator's folder.
type Folder struct {
	federation.Folder
	Config  Config
	Secrets *Secrets

	mu    sync.Mutex
	seen  fs.FileInfo // of sites.json as it was read last, which
	known Registry    // said this

	queued  []*registryChange // that wait for their turn; under mu
	writing sync.Mutex        // held by whoever writes them
}

const (
	keyFile      = "coordinator.key"
	configFile   = "coordinator.json"
	registryFile = "sites.json"
)

// Init makes a new folder. The account is empty for the embedded broker.
func Init(path string, methods method.Registry, c Config, account Account) (*Folder, error) {
	secrets, err := newSecrets(account)
	if err != nil {
		return nil, err
	}
	return create(path, methods, c, secrets)
}

// create makes the folder of secrets.
func create(path string, methods method.Registry, c Config, s *Secrets) (*Folder, error) {
	c.Version = configVersion
	if err := c.check(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(path, keyFile)); err == nil {
		return nil, problem.Problem{File: path, What: "a coordinator's folder is here already",
			Hint: "serve it with: parley coordinator serve " + path}
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	f := &Folder{Folder: federation.Folder{Path: path}, Config: c, Secrets: s}
	if err := f.WriteJSON(configFile, c); err != nil {
		return nil, err
	}
	if err := f.WriteJSON(registryFile, Registry{}); err != nil {
		return nil, err
	}
	if err := s.save(f.File(keyFile)); err != nil { // last: with it the folder is one
		return nil, err
	}
	return Open(path, methods)
}

// Open opens a folder.
func Open(path string, methods method.Registry) (f *Folder, err error) {
	f = &Folder{Folder: federation.Folder{Path: path, Methods: methods}}
	if f.Secrets, err = loadSecrets(f.File(keyFile)); err != nil {
		return nil, err
	}
	if err := f.ReadJSON(configFile, &f.Config); err != nil {
		return nil, err
	}
	if err := f.Config.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.File(configFile), err)
	}
	f.Audit, err = federation.OpenLog(f.File("audit.jsonl"))
	return f, err
}

// Registry is who has been invited, and who has joined. It is sites.json.
type Registry struct {
	Invitations []Invited `json:"invitations"`
	Members     []Member  `json:"members"` // of a site that was replaced, the last
}

// Invited is what is kept of an invitation.
type Invited struct {
	ID       string    `json:"id"`
	Site     string    `json:"site"`
	User     string    `json:"user"` // public key of the guest
	Peer     []byte    `json:"peer"` // public half of what signs the request
	Expires  time.Time `json:"expires"`
	UsedBy   string    `json:"used_by,omitempty"` // user key of whoever joined with it
	Settled  bool      `json:"settled,omitempty"` // the site has connected with its own key since
	Replaces bool      `json:"replaces,omitempty"`
}

// Member is a site that has joined.
type Member struct {
	Site        string    `json:"site"`
	Serial      uint64    `json:"serial"`
	User        string    `json:"user"`
	Peer        []byte    `json:"peer"`
	Certificate []byte    `json:"certificate"`
	Joined      time.Time `json:"joined"`
	Revoked     bool      `json:"revoked,omitempty"`
	Life        []byte    `json:"life,omitempty"` // of the process that serves as the site
}

func (r *Registry) member(site string) *Member {
	if i := slices.IndexFunc(r.Members, func(m Member) bool { return m.Site == site }); i >= 0 {
		return &r.Members[i]
	}
	return nil
}

// other says whether a key is that with which another site or a guest connects.
func (r *Registry) other(site, user string) bool {
	return slices.ContainsFunc(r.Members, func(m Member) bool { return m.Site != site && m.User == user }) ||
		slices.ContainsFunc(r.Invitations, func(i Invited) bool { return i.User == user })
}

func (r Registry) clone() Registry {
	return Registry{slices.Clone(r.Invitations), slices.Clone(r.Members)}
}

// Registry reads it, unless the file is the one that was read last. What it returns is others' too: not to be changed.
func (f *Folder) Registry() (r Registry, err error) {
	info, err := os.Stat(f.File(registryFile))
	if err != nil {
		return r, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil || !os.SameFile(info, f.seen) || info.Size() != f.seen.Size() ||
		!info.ModTime().Equal(f.seen.ModTime()) {
		if err := f.ReadJSON(registryFile, &r); err != nil {
			return r, err
		}
		f.seen, f.known = info, r
	}
	return f.known, nil
}

// registryChange is what somebody wants changed. It is not to be done if it returns an error.
type registryChange struct {
	do   func(*Registry, *Secrets) error
	done bool
	err  error
}

// change changes the registry, and the secrets if a key is revoked. Both are read anew, since other processes change
// them too. What comes while others are written is written at once with all that has come, so that a thousand sites
// that connect do not write a thousand times what is known of a thousand.
func (f *Folder) change(do func(*Registry, *Secrets) error) error {
	own := &registryChange{do: do}
	f.mu.Lock()
	f.queued = append(f.queued, own)
	f.mu.Unlock()
	f.writing.Lock()
	defer f.writing.Unlock()
	if own.done {
		return own.err
	}
	f.mu.Lock()
	turn := f.queued
	f.queued = nil
	f.mu.Unlock()
	err := f.Alone(func() error { return f.changeAll(turn) })
	for _, c := range turn {
		c.done, c.err = true, cmp.Or(c.err, err)
	}
	return own.err
}

func (f *Folder) changeAll(turn []*registryChange) error {
	r, err := f.Registry()
	if err != nil {
		return err
	}
	s, err := loadSecrets(f.File(keyFile))
	if err != nil {
		return err
	}
	before := len(s.Revoked)
	for _, c := range turn {
		registry, secrets := r.clone(), *s
		if c.err = c.do(&registry, &secrets); c.err == nil {
			r, s = registry, &secrets
		}
	}
	if len(s.Revoked) > before { // first: a crash between the two must not leave a revoked key good
		if err := s.save(f.File(keyFile)); err != nil {
			return err
		}
	}
	if err := f.WriteJSON(registryFile, r); err != nil {
		return err
	}
	info, err := os.Stat(f.File(registryFile))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen, f.known = info, r
	return err
}

// refused are the keys that may not connect: those that were revoked, and those of
// guests whose invitations have been used.
func (f *Folder) refused() ([]string, error) {
	s, err := loadSecrets(f.File(keyFile))
	if err != nil {
		return nil, err
	}
	r, err := f.Registry()
	if err != nil {
		return nil, err
	}
	list := s.users()
	for _, i := range r.Invitations {
		if i.Settled {
			list = append(list, i.User)
		}
	}
	return list, nil
}

// Invite makes an invitation for a site. One that has joined is invited again
// only to be replaced: its old keys are revoked when the invitation is used.
func (f *Folder) Invite(site string, expires time.Time, replace bool) (*federation.Invitation, error) {
	if !study.IsName(site) || site == brokerName {
		return nil, fmt.Errorf("%q cannot be the name of a site\n  hint: small letters, digits and -, at most 40, as "+
			"in a plan; and not "+brokerName, site)
	}
	secret, err := wire.NewKey()
	if err != nil {
		return nil, err
	}
	i := &federation.Invitation{ID: federation.NewID(), Site: site, URLs: f.Config.URLs(), Roots: f.Roots(),
		Expires: expires.Unix()}
	var user string
	if i.Seed, user, err = nats.NewUser(); err != nil {
		return nil, err
	}
	if i.JWT, err = f.Secrets.Authority.Guest(i.ID, user, expires); err != nil {
		return nil, err
	}
	if i.Secret, err = secret.MarshalBinary(); err != nil {
		return nil, err
	}
	if i.Coordinator, err = f.Secrets.Key.Peer().MarshalBinary(); err != nil {
		return nil, err
	}
	peer, err := secret.Peer().MarshalBinary()
	if err != nil {
		return nil, err
	}
	err = f.change(func(r *Registry, _ *Secrets) error {
		if m := r.member(site); m != nil && !m.Revoked && !replace {
			return fmt.Errorf("site %s has joined already\n  hint: to let it join again with new keys, and revoke its "+
				"old ones: --replace", site)
		}
		r.Invitations = append(r.Invitations, Invited{ID: i.ID, Site: site, User: user, Peer: peer,
			Expires: expires.UTC(), Replaces: replace})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return i, f.Audit.Add("invited", "", site, "invitation "+i.ID+" until "+expires.UTC().Format(time.RFC3339))
}

// Roots are the certificates, as PEM, that sites hold the broker's against; empty
// for those that the system trusts.
func (f *Folder) Roots() []byte {
	if f.Config.Roots != "" {
		return []byte(f.Config.Roots)
	}
	return f.Secrets.roots()
}

// Revoke lets a site's keys connect no more, and withdraws its invitations. It
// returns the public key with which the site connects; empty if it has not joined.
func (f *Folder) Revoke(site string) (user string, err error) {
	err = f.change(func(r *Registry, s *Secrets) error {
		m := r.member(site)
		open := slices.ContainsFunc(r.Invitations, func(i Invited) bool { return i.Site == site && i.UsedBy == "" })
		if m == nil && !open {
			return fmt.Errorf("site %s has neither joined nor been invited", site)
		}
		for _, i := range r.Invitations {
			if i.Site == site {
				s.Revoked = append(s.Revoked, Revoked{Site: site, User: i.User})
			}
		}
		r.Invitations = slices.DeleteFunc(r.Invitations, func(i Invited) bool { return i.Site == site })
		if m != nil {
			user = m.User
			if !m.Revoked {
				s.revoke(m)
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return user, f.Audit.Add("revoked", "", site, "its keys connect no more")
}

// revoke notes that a site's keys are good no more.
func (s *Secrets) revoke(m *Member) {
	m.Revoked = true
	s.Revoked = append(s.Revoked, Revoked{Site: m.Site, Serial: m.Serial, User: m.User})
}

// brokerName is the name by which the broker knows the coordinator.
const brokerName = "coordinator"

// Submit gives the coordinator a study to run. A plan that it has already changes nothing.
func (f *Folder) Submit(p *study.Plan) (digest string, fresh bool, err error) {
	if slices.Contains(p.Sites, brokerName) {
		return "", false, fmt.Errorf("a site of the plan is called %s, as the other end is\n  hint: give the site "+
			"another name", brokerName)
	}
	if p, err = f.withKeys(p); err != nil {
		return "", false, err
	}
	d, err := p.Digest()
	if err != nil {
		return "", false, err
	}
	digest = d.String()
	data, err := p.Encode()
	if err != nil {
		return "", false, err
	}
	err = f.Alone(func() error {
		path := filepath.Join(f.StudyPath(digest), federation.PlanFile)
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		fresh = true
		return files.Write(path, data)
	})
	if err == nil && fresh {
		err = f.Audit.Add("submitted", digest, "", "plan "+p.Name)
	}
	return digest, fresh, err
}

// withKeys is a plan with the public keys of its sites, where it has a secure sum and does not name them: sites
// mask for these keys and no others, so that whoever compares them by another way knows who can open a total.
func (f *Folder) withKeys(p *study.Plan) (*study.Plan, error) {
	if !p.Privacy.Secure() || len(p.Privacy.Keys) > 0 {
		return p, nil
	}
	r, err := f.Registry()
	if err != nil {
		return nil, err
	}
	named := *p
	for _, site := range p.Sites {
		m := r.member(site)
		if m == nil || m.Revoked {
			return nil, fmt.Errorf("the plan has sum: secure, and site %s has not joined: its keys are not known\n  "+
				"hint: submit the plan once all of its sites have joined", site)
		}
		peer, err := wire.ParsePeer(m.Peer)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
		keys, err := peer.Masks(site)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
		named.Privacy.Keys = append(named.Privacy.Keys, keys.Text())
	}
	return &named, nil
}

// Stopped says whether a study has stopped, and has not been aborted: then [Order]
// Again makes it go on from where it was.
func (f *Folder) Stopped(digest string) (bool, error) {
	state, err := f.loadState(digest)
	if err != nil || state.State != Stopped {
		return false, err
	}
	orders, err := f.Orders(digest)
	return !slices.ContainsFunc(orders, func(o Order) bool { return o.Abort }), err
}

// Order is a person's word about a study.
type Order struct {
	At    time.Time `json:"at"`
	Drop  string    `json:"drop,omitempty"` // a site
	Abort bool      `json:"abort,omitempty"`
	Again bool      `json:"again,omitempty"` // try again what has stopped
}

// Give adds an order, which the daemon follows as soon as it sees it.
func (f *Folder) Give(digest string, o Order) error {
	o.At = time.Now().UTC().Truncate(time.Second)
	err := f.Alone(func() error {
		if state, err := f.loadState(digest); err != nil {
			return err
		} else if state.State == Ended {
			return fmt.Errorf("study %.12s is done: it cannot be ended, and no site can leave it any more", digest)
		}
		orders, err := f.Orders(digest)
		if err != nil {
			return err
		}
		return f.WriteJSON(filepath.Join("studies", digest, "orders.json"), append(orders, o))
	})
	if err != nil {
		return err
	}
	switch {
	case o.Abort:
		return f.Audit.Add("aborted", digest, "", "by a person")
	case o.Again:
		return f.Audit.Add("submitted", digest, "", "again, after it had stopped")
	}
	return f.Audit.Add("dropped", digest, o.Drop, "by a person")
}

// Orders reads what persons have said about a study.
func (f *Folder) Orders(digest string) (orders []Order, err error) {
	err = f.ReadJSON(filepath.Join("studies", digest, "orders.json"), &orders)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return orders, err
}

// Rebuild makes a folder again from the coordinator's key, kept elsewhere, and the
// plans. The daemon then asks the sites for the history of each study, and goes on
// where they are, at no new charge.
func Rebuild(path, key string, methods method.Registry, c Config, plans []*study.Plan) (*Folder, error) {
	s, err := loadSecrets(key)
	if err != nil {
		return nil, err
	}
	f, err := create(path, methods, c, s)
	if err != nil {
		return nil, err
	}
	for _, p := range plans {
		digest, _, err := f.Submit(p)
		if err != nil {
			return nil, err
		}
		if err := f.saveState(digest, studyState{State: Waiting, Rebuild: true}); err != nil {
			return nil, err
		}
	}
	return f, f.Audit.Add("rebuilt", "", "", fmt.Sprintf("from the key and %d plans", len(plans)))
}

// The states of a study.
const (
	Waiting = "waiting" // for its first round
	Running = "running"
	Ended   = "done"
	Stopped = "stopped" // it failed, or was aborted: Text says why
)

// studyState is what the daemon keeps of a study beside its checkpoint.
type studyState struct {
	State string `json:"state"`
	Text  string `json:"text,omitempty"`
	// Rebuild says that the history is to be asked of the sites before the first
	// round; Revision and Version are those of the method and of the program with
	// which the study began.
	Rebuild  bool   `json:"rebuild,omitempty"`
	Revision int    `json:"revision,omitempty"`
	Version  string `json:"version,omitempty"`
	// Delivered are the sites that have what they may have, and Left says of those that
	// answer no more why.
	Delivered []string          `json:"delivered,omitempty"`
	Left      map[string]string `json:"left,omitempty"`
	// Approved are the sites whose people have approved it, and Waited is how long each has
	// been waited for.
	Approved []string          `json:"approved,omitempty"`
	Waited   map[string]waited `json:"waited,omitempty"`
}

func (f *Folder) saveState(digest string, s studyState) error {
	return f.WriteJSON(filepath.Join("studies", digest, "state.json"), s)
}

func (f *Folder) loadState(digest string) (s studyState, err error) {
	s.State = Waiting
	err = f.ReadJSON(filepath.Join("studies", digest, "state.json"), &s)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	slices.Sort(s.Delivered) // an older program did not keep them so
	return s, err
}

func (s *studyState) deliver(site string) {
	at, _ := slices.BinarySearch(s.Delivered, site)
	s.Delivered = slices.Insert(s.Delivered, at, site)
}

func (s *studyState) delivered(site string) bool {
	_, has := slices.BinarySearch(s.Delivered, site)
	return has
}

// brokerPath is the folder of the embedded broker.
func (f *Folder) brokerPath() string { return f.File("broker") }

// brokerMark is gone if somebody deletes the broker's files while it runs.
func (f *Folder) brokerMark() string { return filepath.Join(f.brokerPath(), "in-use") }

func (f *Folder) markBroker() error { return files.WriteOwn(f.brokerMark(), nil) }
