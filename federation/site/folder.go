// Package site is a site's folder, which [Join] makes and [Open] opens, and the [Daemon]
// that answers the studies in it.
//
// The folder is the whole interface between the two: commands change its files,
// whether the daemon runs or not, and the daemon looks at them. Nothing in it
// leaves the site but through the gate.
package site

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"parley/dataset"
	"parley/engine"
	"parley/engine/host"
	"parley/engine/nats"
	"parley/engine/wire"
	"parley/federation"
	"parley/internal/files"
	encoding "parley/internal/wire"
	"parley/method"
	"parley/privacy/policy"
	"parley/problem"
	"parley/sitestore"
	"parley/study"
)

// Config is who the site is, and where its coordinator is. It is site.json.
type Config struct {
	Version     int      `json:"version"`
	Site        string   `json:"site"`
	Coordinator []byte   `json:"coordinator"` // its public key
	URLs        []string `json:"urls"`
	Roots       string   `json:"roots,omitempty"` // PEM, pinned; empty: the system's
	Certificate []byte   `json:"certificate"`     // by which the coordinator knows the site
	JWT         string   `json:"jwt"`             // with which it connects
	Invitation  string   `json:"invitation"`      // with which it has joined
	// Data is where the site's rows are; empty: data in the folder.
	Data string `json:"data,omitempty"`
	// Receipts is where it is noted how far the ledger has come, better on another disk
	// than the folder; empty: receipts.json in the folder.
	Receipts string `json:"receipts,omitempty"`
	// Checksum is one of all but URLs, Data and Receipts, which people may edit; empty if an
	// older program wrote the file.
	Checksum string `json:"checksum,omitempty"`
}

// sum is the checksum that the configuration should have.
func (c Config) sum() string {
	c.URLs, c.Data, c.Receipts, c.Checksum = nil, "", "", ""
	data, _ := json.Marshal(c) // strings and bytes
	return files.Checksum(data)
}

const configVersion = 1

// Secrets are made at the site and never leave it.
type Secrets struct {
	Key  *wire.Key // signs and opens
	User []byte    // seed of what connects
}

// Folder is a site's folder.
type Folder struct {
	federation.Folder
	Config      Config
	Secrets     Secrets
	Coordinator wire.Peer

	mu   sync.Mutex // held while Config changes, and around Config.Data and seen
	seen string     // the size and time of the configuration whose Data is in use
}

const (
	keyFile    = "site.key"
	configFile = "site.json"
	keyMark    = "parley-site-key-"
)

type secretBytes struct {
	_    struct{} `cbor:",toarray"`
	Key  []byte
	User []byte
}

func (s Secrets) save(path string) error {
	key, err := s.Key.MarshalBinary()
	if err != nil {
		return err
	}
	data, err := encoding.Marshal(secretBytes{Key: key, User: s.User})
	if err != nil {
		return err
	}
	return files.WriteOwn(path, federation.Armour("# The secrets of a site of Parley. They never leave it.\n",
		keyMark, data, 0))
}

func loadSecrets(path string) (s Secrets, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	data, err := federation.Unarmour(keyMark, text)
	var b secretBytes
	if err == nil {
		err = encoding.Unmarshal(data, &b)
	}
	if err == nil {
		s.Key, err = wire.ParseKey(b.Key)
	}
	if err != nil {
		return s, problem.Problem{File: path, What: "the key is damaged: " + err.Error(),
			Hint: "bring it back from a backup; or ask for an invitation that replaces this site's keys"}
	}
	s.User = b.User
	return s, nil
}

// Open opens the folder of a site that has joined.
func Open(path string, methods method.Registry) (f *Folder, err error) {
	f = &Folder{Folder: federation.Folder{Path: path, Methods: methods}}
	if f.Secrets, err = loadSecrets(f.File(keyFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, problem.Problem{File: path, What: "this is not the folder of a site that has joined",
			Hint: "a site joins with: parley site join INVITATION"}
	}
	if err == nil {
		f.Config, err = f.config()
	}
	if err != nil {
		return nil, err
	}
	if f.Config.Version != configVersion {
		return nil, fmt.Errorf("%s has version %d\n  hint: this program reads version %d", f.File(configFile),
			f.Config.Version, configVersion)
	}
	if f.Coordinator, err = wire.ParsePeer(f.Config.Coordinator); err != nil {
		return nil, fmt.Errorf("%s: %w", f.File(configFile), err)
	}
	f.Audit, err = federation.OpenLog(f.File("audit.jsonl"))
	return f, err
}

// SetData says where the site's rows are.
func (f *Folder) SetData(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := dataset.Open(context.Background(), path, dataset.Options{}); err != nil {
		return err
	}
	if err := f.configure(func(c *Config) { c.Data = path }); err != nil {
		return err
	}
	return f.Audit.Add("data", "", f.Config.Site, "the data are those in "+path)
}

// SetReceipts says where it is noted how far the ledger has come.
func (f *Folder) SetReceipts(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	return f.configure(func(c *Config) { c.Receipts = path })
}

// config reads the configuration.
func (f *Folder) config() (c Config, err error) {
	data, err := os.ReadFile(f.File(configFile))
	if err != nil {
		return c, err
	}
	err = files.Decode(data, &c)
	if err == nil && c.Checksum != "" && c.Checksum != c.sum() {
		err = errors.New("its checksum does not hold: something other than urls, data and receipts was changed")
	}
	if err != nil {
		err = problem.Problem{File: f.File(configFile), What: "the file is damaged: " + err.Error(),
			Hint: "bring it back from a backup; or ask for an invitation that replaces this site's keys"}
	}
	return c, err
}

// saveConfig writes it, with its checksum.
func (f *Folder) saveConfig(c Config) error {
	c.Checksum = c.sum()
	return f.WriteJSON(configFile, c)
}

// configure changes the configuration. It is read anew, since other processes change
// it too.
func (f *Folder) configure(change func(*Config)) error {
	c, err := f.config()
	if err != nil {
		return err
	}
	change(&c)
	if err := f.saveConfig(c); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.Config)
	return nil
}

// refresh takes up what commands have changed in the configuration: where the rows are.
func (f *Folder) refresh() error {
	now := string(stat(f.File(configFile)))
	f.mu.Lock()
	same := f.seen == now
	f.mu.Unlock()
	if same {
		return nil
	}
	c, err := f.config()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Config.Data, f.seen = c.Data, now
	return nil
}

// DataPath is where the site's rows are.
func (f *Folder) DataPath() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Config.Data == "" {
		return f.File("data")
	}
	return f.Config.Data
}

// PolicyPath is the file of the site's policy, which may not exist.
func (f *Folder) PolicyPath() string { return f.File("policy.yaml") }

// Policy is what the site allows: the strict default without a file of its own.
func (f *Folder) Policy() (policy.Policy, error) {
	if _, err := os.Stat(f.PolicyPath()); errors.Is(err, fs.ErrNotExist) {
		return policy.Default(), nil
	}
	return policy.Load(f.PolicyPath())
}

// StorePath is the site's store.
func (f *Folder) StorePath() string { return f.File("site.db") }

// Receipts are kept beside the store, or on another disk.
func (f *Folder) Receipts() host.Receipts {
	if f.Config.Receipts != "" {
		return host.Receipts(f.Config.Receipts)
	}
	return host.Receipts(f.File("receipts.json"))
}

// keepPlan keeps the plan of a study that the coordinator has posted, after
// holding it against its name.
func (f *Folder) keepPlan(digest string, data []byte) error {
	p, err := study.Decode(data, f.Methods)
	if err != nil {
		return fmt.Errorf("the plan of study %.12s: %w", digest, err)
	}
	own, err := p.Digest()
	if err != nil {
		return err
	}
	if own.String() != digest {
		return fmt.Errorf("the plan that was posted as study %.12s is another one", digest)
	}
	if _, err := os.Stat(f.File("studies", digest, federation.PlanFile)); err == nil {
		return nil
	}
	if err := f.room(); err != nil {
		return err
	}
	text, err := p.YAML()
	if err != nil {
		return err
	}
	if err := files.Write(f.File("studies", digest, "plan.yaml"), text); err != nil {
		return err
	}
	return files.Write(f.File("studies", digest, federation.PlanFile), data)
}

// maxDaily limits the plans that are kept in a day, and so what a coordinator can ask of a
// site by posting them.
const maxDaily = 100

var errDaily = fmt.Errorf("the site has had %d new plans within a day, and takes up this one later", maxDaily)

// room says whether another plan may be kept.
func (f *Folder) room() error {
	list, err := f.Studies()
	recent := 0
	for _, digest := range list {
		if info, err := os.Stat(f.File("studies", digest, federation.PlanFile)); err == nil &&
			time.Since(info.ModTime()) < 24*time.Hour {
			recent++
		}
	}
	if err == nil && recent >= maxDaily {
		err = errDaily
	}
	return err
}

// unpostedFile stands in the folder of a study that the coordinator posts no more.
const unpostedFile = "unposted"

func (f *Folder) unposted(digest string) bool {
	_, err := os.Stat(f.File("studies", digest, unpostedFile))
	return err == nil
}

// notePosted notes which of the studies here the coordinator posts.
func (f *Folder) notePosted(posted map[string]bool) error {
	list, err := f.Studies()
	if err != nil {
		return err
	}
	for _, digest := range list {
		path := f.File("studies", digest, unpostedFile)
		switch {
		case posted[digest] == !f.unposted(digest):
		case posted[digest]:
			err = os.Remove(path)
		default:
			err = files.WriteOwn(path, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Decision is what a person, or the policy's rule, has decided about a study.
type Decision struct {
	Approval *host.Approval `json:"approval,omitempty"` // nil if it was refused
	Refused  string         `json:"refused,omitempty"`  // why, for others to read
	// Files are the sizes and times of the files with the data, when it was approved: see
	// [answering.touched].
	Files string    `json:"files,omitempty"`
	At    time.Time `json:"at"`
}

// Decision reads it; nil if nobody has decided.
func (f *Folder) Decision(digest string) (*Decision, error) {
	return federation.Kept[Decision](&f.Folder, "studies", digest, "decision.json")
}

func (f *Folder) decide(digest string, d Decision) error {
	d.At = time.Now().UTC().Truncate(time.Second)
	return f.WriteJSON(filepath.Join("studies", digest, "decision.json"), d)
}

// approvedFile approves studies by their digests, one a line; # begins a comment. It
// is for sites whose people decide elsewhere, and put files in place.
const approvedFile = "approved.txt"

// namedApproved says whether the file names the study.
func (f *Folder) namedApproved(digest string) (bool, error) {
	text, err := os.ReadFile(f.File(approvedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == digest {
			return true, nil
		}
	}
	return false, err
}

// Approve records that the site takes part in a study, as everything stands now.
// By says who has decided. What policy, ledger or data do not allow is refused.
func (f *Folder) Approve(ctx context.Context, digest, by string) error {
	p, err := f.Plan(digest)
	if err != nil {
		return err
	}
	if f.unposted(digest) {
		return fmt.Errorf("the coordinator posts study %s no more: it has ended, or was aborted", p.Name)
	}
	files := f.stamp()
	return f.withHost(ctx, p, by == host.ByRule || by == host.ByFile, func(h *host.Host) error {
		a, err := h.Approve(ctx, p, f.Config.Coordinator, by)
		if err != nil {
			return err
		}
		if err := f.decide(digest, Decision{Approval: a, Files: files}); err != nil {
			return err
		}
		data := "data " + a.Data[:min(len(a.Data), 12)]
		if a.Data == "" {
			data = "data not looked at"
		}
		return f.Audit.Add("approved", digest, f.Config.Site,
			fmt.Sprintf("plan %s, by %s; policy %.12s, %s, method %s revision %d", p.Name, a.By, a.Policy, data,
				a.Method, a.Revision))
	})
}

// Refuse records that the site does not take part. The reason is for others to read.
func (f *Folder) Refuse(digest, reason string) error {
	if reason == "" {
		reason = "no reason was given"
	}
	if err := f.decide(digest, Decision{Refused: reason}); err != nil {
		return err
	}
	return f.Audit.Add("refused", digest, f.Config.Site, reason)
}

// Preview says what a study would mean for this site.
func (f *Folder) Preview(ctx context.Context, digest string) (v *host.Preview, err error) {
	p, err := f.Plan(digest)
	if err != nil {
		return nil, err
	}
	err = f.withHost(ctx, p, false, func(h *host.Host) error {
		v, err = h.Preview(ctx, p)
		return err
	})
	return v, err
}

// Holds says whether what was approved of a study still does, as the daemon checks it: the
// plan's columns, every cell, the policy, the method's revision. It is nil if the study has ended,
// or was not approved.
func (f *Folder) Holds(ctx context.Context, digest string) error {
	p, err := f.Plan(digest)
	if err != nil {
		return err
	}
	ended, err := f.Ended(digest)
	if err != nil {
		return err
	}
	d, err := f.Decision(digest)
	if err != nil || ended != nil || d == nil || d.Approval == nil {
		return err
	}
	return f.withHost(ctx, p, false, func(h *host.Host) error {
		if err := h.Approved(ctx, p, f.Config.Coordinator, d.Approval); err != nil {
			return err
		}
		data, err := h.Fingerprint(ctx) // a private study is not approved by its rows, but this is for its own people
		if err == nil && d.Approval.Data != "" && data != d.Approval.Data {
			err = fmt.Errorf("%w: the data are others than were approved\n  hint: put them back, or approve the study "+
				"again", engine.ErrChanged)
		}
		return err
	})
}

// withHost hands over the site's side of a study for looking, beside a daemon that
// may have the store open.
func (f *Folder) withHost(ctx context.Context, p *study.Plan, unasked bool, do func(*host.Host) error) error {
	h, err := f.host(ctx, p, unasked)
	if err != nil {
		return err
	}
	err = sitestore.Look(f.StorePath(), func(s *sitestore.Store) error {
		h.Store = s
		return do(h)
	})
	if errors.Is(err, fs.ErrNotExist) && h.Store == nil { // nothing has ever been charged
		h.Store = sitestore.NewMemory()
		return do(h)
	}
	return err
}

// host is the site's side of a study, without its store. Where no person of the site's looks,
// and everything that leaves is noised, no row is read and what rows hold is no error.
func (f *Folder) host(ctx context.Context, p *study.Plan, unasked bool) (*host.Host, error) {
	rules, err := f.Policy()
	if err != nil {
		return nil, err
	}
	schema := p.Schema()
	keys, err := f.Secrets.Key.Masks()
	if err != nil {
		return nil, err
	}
	h := &host.Host{Site: f.Config.Site, Methods: f.Methods, Policy: rules, Marks: f.Receipts(), Keys: &keys}
	noised, err := h.Noised(p)
	if err != nil {
		return nil, err
	}
	data, err := dataset.Open(ctx, f.DataPath(), dataset.Options{Schema: &schema, Tolerant: unasked && noised})
	if errors.As(err, &h.Faults) { // to be told where it is looked for
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	h.Data = data
	return h, nil
}

// rollback is a loss that a person must decide about, as the daemon met it.
func (f *Folder) rollback(digest string) string {
	return filepath.Join("studies", digest, "rollback.json")
}

// GoOn records that a person lets the site go on after the loss that stopped it.
// The daemon takes it up.
func (f *Folder) GoOn(digest string) error {
	e, err := federation.Kept[engine.RolledBackError](&f.Folder, f.rollback(digest))
	if err == nil && e == nil {
		err = fmt.Errorf("nothing of study %.12s waits for such a decision", digest)
	}
	if err != nil {
		return err
	}
	if err := f.WriteJSON(filepath.Join("studies", digest, "go-on.json"), e); err != nil {
		return err
	}
	return f.Audit.Add("went on", digest, f.Config.Site, e.Decision())
}

// Ended is how a study ended for this site. It is written when the results are.
type Ended struct {
	Left  bool   `json:"left,omitempty"` // the site was not in it at the end
	Words string `json:"words,omitempty"`
	// Failed says why the site's own report could not be made; the shared results are here
	// nevertheless.
	Failed string `json:"failed,omitempty"`
	// Missing are results that were not sent along: see [Folder.Ask].
	Missing []federation.File `json:"missing,omitempty"`
	At      time.Time         `json:"at"`
}

// Ended reads it; nil while the study goes on.
func (f *Folder) Ended(digest string) (*Ended, error) {
	return federation.Kept[Ended](&f.Folder, "studies", digest, "ended.json")
}

// options are those with which the site connects.
func (f *Folder) options(log func(string)) (nats.Options, error) {
	return connection(f.Config.URLs, f.Config.Roots, f.Config.JWT, f.Secrets.User, f.Config.Site, log)
}
