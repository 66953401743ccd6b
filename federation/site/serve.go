package site

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"parley/engine/nats"
	"parley/engine/wire"
	"parley/federation"
	"parley/internal/files"
	"parley/privacy"
	"parley/sitestore"
)

// Daemon answers the studies of a folder until it is told to stop.
type Daemon struct {
	Folder *Folder
	// Again is after how long something is put again that has no answer.
	Again time.Duration
	Log   *slog.Logger
	Watch Watcher // may be nil
	// Privacy are options of the gates; none but in tests: see [host.Host].
	Privacy []privacy.Option
	// UntilDone makes it end when every study that was posted has ended.
	UntilDone bool
	Copies    Copies

	conn  *nats.Conn
	store *sitestore.Store

	mu      sync.Mutex
	program federation.Program // the coordinator's
	nonce   []byte             // of its last board, which has this count
	boards  uint64
	posted  map[string]bool
	heard   bool // a board has been read
	studies map[string]*answering
	// Studies that are over, and whose reports are to be made, or, if false, could not be; over holds a
	// token when one is added.
	unreported map[string]bool
	over       chan struct{}
	life       []byte // of this process
	asked      uint64 // of its last board
	wants      []string
	latest     time.Time // when something last came to the folder, as it was looked at
	looked     time.Time // then
	wrote      time.Time // when it had been looked at as the status was written,
	status     Status    // which said this
	second     []byte    // the life of a process that the coordinator refuses
	count      uint64
	hello      uint64        // revision of the last
	news       chan struct{} // holds a token when something is to be told
	quiet      federation.Quiet
	once       federation.Once
	wg         sync.WaitGroup
}

// Watcher is told what may be counted.
type Watcher interface {
	Answered(study string)
	Connected(ok bool)
}

// look is how often the folder is looked at for what commands have changed, and lookMost for what people edit.
const (
	look     = 300 * time.Millisecond
	lookMost = 10 * look
)

// Serve serves until ctx ends. A task with differential protection that has been
// charged is finished first. What is under way goes on when it is called again.
func (d *Daemon) Serve(ctx context.Context) (err error) {
	f := d.Folder
	lock, err := f.Hold("parley site status")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if d.store, err = sitestore.Open(f.StorePath()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.store.Close()) }()
	if err := d.store.Bind(f.Config.Site); err != nil {
		return err
	}
	o, err := f.options(func(line string) { d.Log.Info(line) })
	if err != nil {
		return err
	}
	if d.conn, err = nats.Connect(o); err != nil {
		return err
	}
	defer d.conn.Close()
	d.posted, d.studies, d.news = map[string]bool{}, map[string]*answering{}, make(chan struct{}, 1)
	d.unreported, d.over = map[string]bool{}, make(chan struct{}, 1)
	list, err := f.Studies()
	if err != nil {
		return err
	}
	for _, digest := range list {
		if kept, err := f.keptEnding(digest); err != nil {
			return err
		} else if kept != nil {
			d.toReport(digest)
		}
	}
	d.life = make([]byte, 16)
	rand.Read(d.life)
	if err := f.Audit.Add("serving", "", f.Config.Site, "the site has started: parley "+
		federation.LocalProgram(f.Methods).Version); err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		d.wg.Wait()
		d.sayGoodbye()
		err = errors.Join(err, d.writeStatus(false))
	}()
	d.wg.Go(func() { d.readBoards(inner) })
	d.wg.Go(func() { d.greet(inner) })
	d.wg.Go(func() { d.report(inner) })
	if d.Copies.Folder != "" {
		d.wg.Go(func() { d.keepCopies(inner) })
	}
	d.Log.Info("serving site "+f.Config.Site+", coordinator at "+f.Config.URLs[0], "site", f.Config.Site)
	said, gone, begun := "", false, int64(0)
	for {
		d.tellOfLongWork()
		if d.changed() {
			// It may pass: the table of file handles, or a disk, may be full.
			d.once.Say(d.Log, "looking at the folder", d.lookAround(inner))
		}
		d.once.Say(d.Log, "writing the status", d.writeStatus(true))
		if n := d.conn.Begun(); n != begun {
			begun = n
			d.tell()
		}
		if now := d.waitsFor(); now != said {
			said = now
			d.Log.Info(now)
		}
		if d.Watch != nil {
			d.Watch.Connected(d.conn.Connected())
		}
		if d.UntilDone && !gone && d.allDone() {
			// Others see the site go before its own report is made: how long that takes depends on rows.
			gone = true
			d.sayGoodbye()
			d.conn.Close()
		}
		if gone && d.reported() {
			return nil
		}
		select {
		case <-ctx.Done():
			d.Log.Info("stopping; what has been charged is finished first")
			return nil
		case <-time.After(look):
		}
	}
}

// tell makes the coordinator hear of a change.
func (d *Daemon) tell() {
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// readBoards takes in what the coordinator posts.
func (d *Daemon) readBoards(ctx context.Context) {
	f := d.Folder
	var seen uint64
	for ctx.Err() == nil {
		value, revision, err := d.conn.Wait(ctx, federation.BoardKey(f.Config.Site), seen)
		if err != nil {
			wire.Pause(ctx, time.Second)
			continue
		}
		b, err := federation.OpenBoard(f.Secrets.Key, f.Coordinator, f.Config.Site, value)
		if err == nil {
			err = d.take(b)
		}
		passing := err
		if !files.Failed(err) && !errors.Is(err, errDaily) {
			passing = nil
		}
		d.once.Say(d.Log, "keeping what the coordinator has posted", passing)
		if passing != nil { // no other board may come: it is read again
			wire.Pause(ctx, d.Again)
			continue
		}
		seen = revision
		if err != nil {
			d.audit("passed over", "", "what stood for the coordinator's board: "+err.Error())
		}
	}
}

// closed says whether the coordinator posts a study no more, of whose end nothing has been made
// here.
func (d *Daemon) closed(digest string) bool {
	d.mu.Lock()
	posted := d.posted[digest]
	d.mu.Unlock()
	if posted {
		return false
	}
	kept, err := d.Folder.keptEnding(digest)
	if err != nil || kept == nil {
		return false
	}
	ended, err := d.Folder.Ended(digest)
	return err == nil && ended == nil
}

// take takes in a board, unless it is earlier than one of the same life of the coordinator that was taken in: whoever
// runs the broker may have kept it. The error is errDaily if plans of it have to wait.
func (d *Daemon) take(b federation.Board) error {
	f := d.Folder
	if bytes.Equal(d.nonce, b.Nonce) && b.Count < d.boards {
		return nil
	}
	var wait error
	for _, p := range b.Studies {
		if len(p.Plan) == 0 || p.Needs != "" {
			continue
		}
		if err := f.keepPlan(p.Study, p.Plan); errors.Is(err, errDaily) {
			d.audit("waits", p.Study, err.Error())
			wait = err
		} else if err != nil {
			d.audit("passed over", p.Study, "what was posted: "+err.Error())
		}
	}
	if b.Handed != nil {
		if err := f.keepHanded(*b.Handed); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.boards = b.Count
	if b.JWT != "" && b.JWT != f.Config.JWT {
		if err := f.configure(func(c *Config) { c.JWT = b.JWT }); err != nil {
			return err
		}
		d.conn.SetCredentials(b.JWT)
	}
	if !bytes.Equal(d.nonce, b.Nonce) || d.asked != b.Ask {
		d.nonce, d.asked = b.Nonce, b.Ask
		d.tell()
	}
	if d.second = b.Second; len(d.second) > 0 {
		d.audit("noted", "", d.twoServe())
	}
	d.program, d.heard, d.looked = b.Program, true, time.Time{}
	d.posted = map[string]bool{}
	for _, p := range b.Studies {
		a := d.studies[p.Study]
		if a == nil {
			plan, err := f.Plan(p.Study)
			if err != nil && p.Needs == "" && wait == nil {
				continue // what no hello names is posted again, with its plan
			}
			a = &answering{daemon: d, digest: p.Study, plan: plan}
			d.studies[p.Study] = a
			if plan != nil {
				d.Log.Info(fmt.Sprintf("the coordinator posts study %s (%.12s)", plan.Name, p.Study), "study", p.Study)
				if err := f.Audit.Add("posted", p.Study, f.Config.Site, "plan "+plan.Name); err != nil {
					return err
				}
			}
			d.tell()
		}
		d.posted[p.Study] = true
		if a.plan == nil && p.Needs == "" {
			a.plan, _ = f.Plan(p.Study)
		}
		if a.setNeeds(p.Needs, p.Stopped); a.plan == nil && wait != nil {
			a.set(federation.Unable, wait.Error(), "")
		}
	}
	return errors.Join(wait, f.notePosted(d.posted))
}

// greet tells the coordinator where the site stands: first when it has read a board, or none comes; then at every
// change, and now and then.
func (d *Daemon) greet(ctx context.Context) {
	said, soon := stands{}, min(d.Again, firstBoard)
	var err error
	for wait := soon; ; {
		again, held := time.After(wait), false
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case <-again:
				if waiting = !d.conn.Connected(); waiting {
					again = time.After(wait)
				}
			case <-d.news:
				switch now := d.stands(); {
				case len(now.nonce) == 0: // it has connected, and a board may come
					again = time.After(soon)
				case err == nil && now.equal(said):
				case !now.looking:
					waiting = false
				case !held: // one hello says soon what two would
					again, held = time.After(soon), true
				}
			}
		}
		var other bool
		said = d.stands()
		other, err = d.say(ctx, said)
		switch wait = seldom*d.Again + seldom*d.Again*time.Duration(d.life[1])/512; { // not all sites at once
		case err != nil:
			wait = time.Second
		case other || said.asked > 0: // there are two processes, and each replaces what the other has said
			wait = d.Again/6 + d.Again/6*time.Duration(d.life[0])/256 // not both at once
		}
	}
}

// firstBoard is how long a site that has just come waits for a board, and with its hello until it has looked at a new
// study; seldom how often it says one though nothing has changed, in terms of Again.
const (
	firstBoard = 2 * time.Second
	seldom     = 60
)

// say puts a hello, and says whether another process has put one since the last.
func (d *Daemon) say(ctx context.Context, s stands) (other bool, err error) {
	f := d.Folder
	d.count++
	h := federation.Hello{Program: federation.LocalProgram(f.Methods), Nonce: s.nonce, Life: d.life, Count: d.count,
		Studies: s.list, Wants: s.wants, Bye: s.bye}
	message, err := federation.Greet(f.Secrets.Key, f.Coordinator, f.Config.Certificate, f.Config.Site, h)
	if err != nil {
		return false, err
	}
	return federation.Replace(ctx, d.conn, federation.HelloKey(f.Config.Site), message, &d.hello)
}

// sayGoodbye lets another process of the site serve at once.
func (d *Daemon) sayGoodbye() {
	if d.conn.Connected() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		s := d.stands()
		s.bye = true
		d.say(ctx, s) // without it, the next one waits a little
	}
	if words := d.twoServe(); words != "" {
		d.Log.Warn(words)
	}
}

// twoServe says what to do if another process serves as this site too; the caller holds
// d.mu, or nobody else is there any more.
func (d *Daemon) twoServe() string {
	site := d.Folder.Config.Site
	switch {
	case len(d.second) == 0:
		return ""
	case bytes.Equal(d.second, d.life):
		return "two machines serve as " + site + ", and this one answers nothing: stop one of them; if this folder " +
			"is a copy of the other's, remove it; if it is the right one, it goes on as soon as the other is stopped"
	}
	return "two machines serve as " + site + ", and the other one answers nothing: stop one of them; if the other's " +
		"folder is a copy of this one, remove it"
}

// stands is what a hello would say now: the nonce of the last board, what that asks for, and
// where the site stands with each study on it.
type stands struct {
	begun int64 // connections: another one may be to a broker without the last hello
	nonce []byte
	asked uint64
	list  []federation.Standing
	wants []string
	bye   bool
	// looking: there is a study that was not looked at yet
	looking bool
}

func (s stands) equal(as stands) bool {
	return s.begun == as.begun && bytes.Equal(s.nonce, as.nonce) && s.asked == as.asked &&
		slices.Equal(s.list, as.list) && slices.Equal(s.wants, as.wants)
}

func (d *Daemon) stands() (now stands) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, digest := range slices.Sorted(maps.Keys(d.posted)) {
		if s := d.studies[digest].standing(); s.Word != "" {
			now.list = append(now.list, s)
		} else {
			now.looking = true
		}
	}
	now.begun, now.nonce, now.asked, now.wants = d.conn.Begun(), d.nonce, d.asked, d.wants
	return now
}

// changed says whether the folder is to be looked at: a file has come to it or to a study's, a board has come, or it
// was not looked at for lookMost. Most looks find nothing, and a thousand sites may share a machine.
func (d *Daemon) changed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	paths := []string{d.Folder.Path}
	for digest := range d.studies {
		paths = append(paths, d.Folder.StudyPath(digest))
	}
	var latest time.Time
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(latest) {
			latest = info.ModTime()
		}
	}
	now := time.Now()
	if latest.Equal(d.latest) && now.Before(d.looked.Add(lookMost)) {
		return false
	}
	d.latest, d.looked = latest, now
	return true
}

// lookAround takes up what persons have decided, and what has changed beneath it.
func (d *Daemon) lookAround(ctx context.Context) error {
	if err := d.Folder.refresh(); err != nil {
		return err
	}
	wants, err := d.Folder.wanted()
	if err != nil {
		return err
	}
	d.mu.Lock()
	if !slices.Equal(d.wants, wants) {
		d.wants = wants
		d.tell()
	}
	var list, halted []*answering
	for digest, a := range d.studies {
		switch posted := d.posted[digest]; {
		case posted && a.plan != nil && a.needs == "": // both change under this lock alone
			list = append(list, a)
		case a.plan == nil && !posted:
			delete(d.studies, digest)
		default:
			halted = append(halted, a)
		}
	}
	d.mu.Unlock()
	for _, a := range halted {
		if a.stop(); d.closed(a.digest) {
			d.toReport(a.digest) // the coordinator has heard that it is over, though the site has not heard so
		}
	}
	for _, a := range list {
		if err := a.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// allDone says whether every study that was posted has ended here.
func (d *Daemon) allDone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.heard || len(d.studies) == 0 {
		return false
	}
	for digest := range d.studies {
		if d.posted[digest] { // until the coordinator knows that the site has what it may have
			return false
		}
	}
	return true
}

// reported says whether no report waits to be made.
func (d *Daemon) reported() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !slices.Contains(slices.Collect(maps.Values(d.unreported)), true)
}

// audit notes what has no effect, but should be known.
func (d *Daemon) audit(what, study, text string) {
	text, ok := d.quiet.Line(text, time.Now())
	if !ok {
		return
	}
	d.Log.Warn(what+": "+text, "study", study)
	d.once.Say(d.Log, "writing the audit log", d.Folder.Audit.Add(what, study, d.Folder.Config.Site, text))
}
