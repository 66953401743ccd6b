package coordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"parley/engine/nats"
	"parley/federation"
	"parley/internal/files"
	"parley/problem"
)

// Daemon serves the studies of a folder until it is told to stop.
type Daemon struct {
	Folder *Folder
	// Again is after how long something is put again that has no answer.
	Again time.Duration
	Log   *slog.Logger
	Watch Watcher // may be nil

	server  *nats.Server
	conn    *nats.Conn
	nonce   []byte
	program federation.Program // this one

	mu        sync.Mutex
	members   map[string]*member // by site: every one that has joined, or that a plan names
	studies   map[string]*running
	guests    map[string]context.CancelFunc // by invitation that is listened for
	refused   []string                      // keys, as the broker knows them
	suspended map[string]string             // keys that the broker refuses for a while, and why
	health    string                        // what is wrong with the broker; empty if nothing is
	news      notice
	handing   chan struct{} // by those whose boards carry results
	once      federation.Once
	wrote     Status // last
	wg        sync.WaitGroup
}

// Watcher is told what may be counted.
type Watcher interface {
	Round(study string)
	Health(ok bool)
	Stored(values uint64) // by the embedded broker
}

// The folder is looked at for what commands have changed three times a second, and of many members, each of which takes
// some of a look, once in so many times lookEach, but no less often than lookMost.
const (
	look     = 300 * time.Millisecond
	lookMost = 5 * time.Second
	lookEach = 2500 * time.Microsecond
	// quietLooks is how many looks pass at most from one status to the next: fewer after any change.
	quietLooks = 8
)

// Serve serves until ctx ends. What is under way then goes on when it is called
// again.
func (d *Daemon) Serve(ctx context.Context) (err error) {
	lock, err := d.Folder.Hold("parley coordinator status")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	d.nonce = make([]byte, 16)
	rand.Read(d.nonce)
	d.program = federation.LocalProgram(d.Folder.Methods)
	d.members, d.studies, d.guests = map[string]*member{}, map[string]*running{}, map[string]context.CancelFunc{}
	d.handing = make(chan struct{}, handedAtOnce)
	if err := d.connect(); err != nil {
		return err
	}
	defer d.disconnect()
	if err := d.Folder.Audit.Add("serving", "", "", "the coordinator has started: parley "+
		d.program.Version); err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		d.wg.Wait()
		_, last := d.writeStatus(false)
		err = errors.Join(err, last)
	}()
	d.goOn(inner, d.watchHealth)
	if d.server != nil {
		d.goOn(inner, d.watchUsage)
	}
	if len(d.Folder.Config.NATS) > 0 {
		d.Log.Info("serving, through the broker at "+d.Folder.Config.NATS[0], "urls", d.Folder.Config.NATS)
	} else {
		d.Log.Info("serving at "+d.Folder.Config.URLs()[0], "urls", d.Folder.Config.URLs())
	}
	news, pause, passed := d.news.changed(), 1, 1
	for {
		// It may pass: the table of file handles, or a disk, may be full.
		d.once.Say(d.Log, "looking at the folder", d.lookAround(inner))
		select {
		case <-news:
			news, pause = d.news.changed(), 1
		default:
		}
		if passed++; passed >= pause {
			changed, err := d.writeStatus(true)
			d.once.Say(d.Log, "writing the status", err)
			if passed = 0; changed {
				pause = 1
			} else {
				pause = min(2*pause, quietLooks)
			}
		}
		select {
		case <-ctx.Done():
			d.Log.Info("stopping")
			return nil
		case <-time.After(d.untilLook(look)):
		}
	}
}

// untilLook is how long it is until the next look at all members, at least so long.
func (d *Daemon) untilLook(least time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(least, min(lookMost, time.Duration(len(d.members))*lookEach))
}

// goOn runs do in the background; Serve waits for it.
func (d *Daemon) goOn(ctx context.Context, do func(context.Context)) {
	d.wg.Go(func() { do(ctx) })
}

// connect starts the broker, if it is embedded, and connects to it.
func (d *Daemon) connect() (err error) {
	f := d.Folder
	user, err := nats.PublicOf(f.Secrets.User)
	if err != nil {
		return err
	}
	jwt, err := f.Secrets.Authority.Coordinator(user)
	if err != nil {
		return err
	}
	o := nats.Options{JWT: jwt, Seed: f.Secrets.User, Name: brokerName, Replicas: 1,
		Log: func(line string) { d.Log.Info(line) }}
	if len(f.Config.NATS) > 0 {
		o.URLs, o.Replicas = f.Config.NATS, max(f.Config.Replicas, 1)
		if o.Roots, err = nats.Roots(f.Roots()); err != nil {
			return err
		}
	} else {
		certificate, err := f.Secrets.certificate(f.Config.Hosts)
		if err != nil {
			return err
		}
		if d.refused, err = f.refused(); err != nil {
			return err
		}
		if err := os.MkdirAll(f.brokerPath(), 0o700); err != nil {
			return err
		}
		if err := f.markBroker(); err != nil {
			return err
		}
		d.server, err = nats.StartServer(nats.ServerOptions{Dir: f.brokerPath(), Listen: f.Config.Listen,
			WebSocket:   f.Config.WebSocket,
			Certificate: certificate, Authority: f.Secrets.Authority, Revoked: d.refused})
		if err != nil {
			return fmt.Errorf("starting the broker: %w\n  hint: parley coordinator doctor %s says what is in its way",
				err, problem.Shell(f.Path))
		}
		o.Server = d.server
	}
	if d.conn, err = nats.Connect(o); err != nil && d.server != nil {
		d.server.Stop()
	}
	return err
}

func (d *Daemon) disconnect() {
	d.conn.Close()
	if d.server != nil {
		d.server.Stop()
	}
}

// lookAround takes up what commands have changed in the folder.
func (d *Daemon) lookAround(ctx context.Context) error {
	r, err := d.Folder.Registry()
	if err != nil {
		return err
	}
	if err := d.revoke(); err != nil {
		return err
	}
	// Studies first: a board that lacked one would tell its site that it is posted no
	// more.
	studies, err := d.Folder.Studies()
	if err != nil {
		return err
	}
	for _, digest := range studies {
		if err := d.takeUp(ctx, digest); err != nil {
			return err
		}
	}
	for _, m := range r.Members {
		d.member(ctx, m.Site).update(m)
	}
	d.mu.Lock()
	for _, i := range r.Invitations {
		end := d.guests[i.ID]
		if i.Settled && end != nil {
			end()
		} else if !i.Settled && end == nil {
			ctx, end := context.WithCancel(ctx)
			d.guests[i.ID] = end
			d.goOn(ctx, func(ctx context.Context) { d.guest(ctx, i) })
		}
	}
	d.mu.Unlock()
	return nil
}

// takeUp begins to serve a study, or follows what persons have ordered since.
func (d *Daemon) takeUp(ctx context.Context, digest string) error {
	d.mu.Lock()
	s := d.studies[digest]
	d.mu.Unlock()
	if s == nil {
		s = &running{daemon: d, digest: digest}
		err := s.load()
		if files.Failed(err) {
			return err // it may pass
		}
		d.mu.Lock()
		d.studies[digest] = s
		d.mu.Unlock()
		switch {
		case err != nil && s.state.State == Ended: // with a program that knew its plan
			d.Log.Warn(fmt.Sprintf("study %.12s is done, and its plan cannot be read: %v", digest, err))
			return nil
		case err != nil:
			s.stop(err)
			return nil
		}
		d.goOn(ctx, s.serve)
		d.news.give()
	}
	orders, err := d.Folder.Orders(digest)
	if err == nil {
		s.follow(orders)
	}
	return err
}

// revoke tells the broker of keys that were revoked since.
func (d *Daemon) revoke() error {
	if d.server == nil {
		return nil // a foreign broker knows no revocation: credentials expire, and what they sign is passed over
	}
	refused, err := d.Folder.refused()
	if err != nil || len(refused) == len(d.refused) {
		return err
	}
	fresh := slices.DeleteFunc(slices.Clone(refused), func(u string) bool { return slices.Contains(d.refused, u) })
	if err := d.server.Revoke(fresh...); err != nil {
		return fmt.Errorf("revoking keys: %w", err)
	}
	d.refused = refused
	return nil
}

// watchHealth writes to a broker to which nothing else is written: nothing else tells whether
// it can. An embedded one that cannot is started anew, which helps after a full disk. One that is
// only slow acknowledges what others write meanwhile, and is given ten times as long.
func (d *Daemon) watchHealth(ctx context.Context) {
	const patience, each = 30, 10
	pause := min(10*time.Second, 5*d.Again)
	failed := 0
	for {
		began := time.Now()
		inner, cancel := context.WithTimeout(ctx, pause)
		err := d.probe(inner, pause)
		cancel()
		if ctx.Err() != nil {
			return
		}
		wait := pause
		if err == nil {
			failed = 0
			d.setHealth("")
		} else {
			late := errors.Is(err, nats.ErrSlow) || errors.Is(err, context.DeadlineExceeded)
			if failed += each; late && d.conn.Stored("").After(began) {
				failed -= each - 1
			}
			wait = min(time.Second, pause)
			if failed >= patience {
				d.setHealth("the broker takes no writes: " + err.Error())
			}
		}
		if failed >= patience && d.server != nil {
			if err := errors.Join(d.server.Restart(), d.Folder.markBroker()); err != nil {
				d.setHealth("the broker could not be started anew: " + err.Error())
			}
			failed, wait = 0, pause
		}
		if d.Watch != nil {
			d.Watch.Health(err == nil)
			if n, err := d.server.Stored(); err == nil {
				d.Watch.Stored(n)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// probe writes to every bucket in use that has stored nothing lately: after a full disk, one may
// take writes while another does not.
func (d *Daemon) probe(ctx context.Context, lately time.Duration) error {
	if d.server != nil {
		if _, err := os.Stat(d.Folder.brokerMark()); err != nil {
			return fmt.Errorf("its files are gone: %w", err) // it goes on with those that are open, and loses others
		}
	}
	err := d.probeBucket(ctx, federation.Control, lately)
	for _, s := range d.running() {
		if err == nil {
			err = s.probe(ctx, lately)
		}
	}
	return err
}

func (d *Daemon) probeBucket(ctx context.Context, bucket string, lately time.Duration) error {
	key := bucket + ".health"
	if time.Since(d.conn.Stored(key)) < lately {
		return nil
	}
	return federation.Put(ctx, d.conn, key, []byte(time.Now().UTC().Format(time.RFC3339)))
}

func (d *Daemon) setHealth(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if text != d.health && text != "" {
		d.Log.Warn(text)
	} else if text != d.health {
		d.Log.Info("the broker takes writes again")
	}
	d.health = text
}

// notice wakes everybody who waits for a change.
type notice struct {
	mu sync.Mutex
	c  chan struct{}
}

// changed is closed at the next change.
func (n *notice) changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.c == nil {
		n.c = make(chan struct{})
	}
	return n.c
}

func (n *notice) give() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.c != nil {
		close(n.c)
		n.c = nil
	}
}
