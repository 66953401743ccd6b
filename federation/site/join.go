package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/engine/nats"
	"parley/engine/wire"
	"parley/federation"
	"parley/internal/files"
	"parley/method"
	"parley/problem"
	"parley/sitestore"
)

// connection makes the options of one.
func connection(urls []string, roots, jwt string, seed []byte, name string,
	log func(string)) (o nats.Options, err error) {
	o = nats.Options{URLs: urls, JWT: jwt, Seed: seed, Name: name, Log: log}
	o.Roots, err = nats.Roots([]byte(roots))
	return o, err
}

// Join makes path the folder of the site that an invitation is for. Keys are made
// here; only their public halves are sent. The same invitation again changes nothing.
// A folder whose site joins again, with an
// invitation that replaces its keys, keeps its store and its studies.
func Join(ctx context.Context, path string, i *federation.Invitation, methods method.Registry,
	log func(string)) (*Folder, error) {
	if old, err := Open(path, methods); err == nil {
		if old.Config.Site != i.Site {
			return nil, problem.Problem{File: path, What: "this is the folder of site " + old.Config.Site +
				", and the invitation is for " + i.Site, Hint: "choose another with --dir"}
		}
		if old.Config.Invitation == i.ID { // whoever was interrupted since, or asks twice
			return old, nil
		}
		if old.Served() {
			return nil, problem.Problem{File: path, What: "a process serves this site", Hint: "stop it first"}
		}
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o700); err != nil { // somebody has made it before
		return nil, err
	}
	// A request that was made before, and whose answer was lost, is made again.
	asking := filepath.Join(path, "joining-"+i.ID+".key")
	secrets, err := loadSecrets(asking)
	if errors.Is(err, os.ErrNotExist) {
		if secrets.Key, err = wire.NewKey(); err != nil {
			return nil, err
		}
		if secrets.User, _, err = nats.NewUser(); err != nil {
			return nil, err
		}
		err = secrets.save(asking)
	}
	if err != nil {
		return nil, err
	}
	g, err := request(ctx, i, secrets, methods, log)
	if err != nil {
		if errors.Is(err, errRefused) { // these keys are of no use any more
			os.Remove(asking)
		}
		return nil, err
	}
	coordinator, err := wire.ParsePeer(i.Coordinator)
	if err != nil {
		return nil, err
	}
	c, err := federation.ParseCertificate(g.Certificate)
	if err == nil {
		_, err = c.Verify(coordinator)
	}
	if err == nil && c.Site != i.Site {
		err = fmt.Errorf("the coordinator has made this the folder of site %q, and the invitation says %q\n  hint: "+
			"the invitation was altered: ask for another", c.Site, i.Site)
	}
	if err != nil {
		return nil, err
	}
	config := Config{Version: configVersion, Site: i.Site, Coordinator: i.Coordinator, URLs: i.URLs,
		Roots: string(i.Roots), Certificate: g.Certificate, JWT: g.JWT, Invitation: i.ID}
	f := &Folder{Folder: federation.Folder{Path: path}}
	if old, err := f.config(); err == nil {
		config.Data, config.Receipts = old.Data, old.Receipts
	}
	if err := f.saveConfig(config); err != nil {
		return nil, err
	}
	if err := secrets.save(f.File(keyFile)); err != nil {
		return nil, err
	}
	if err := os.Remove(asking); err != nil {
		return nil, err
	}
	if f, err = Open(path, methods); err != nil {
		return nil, err
	}
	return f, f.Audit.Add("joined", "", i.Site, "with invitation "+i.ID)
}

// SameCoordinator checks that the folder at path, if there is one, is not that of a
// site that has joined another coordinator than the one who wrote the invitation:
// joining there makes it forget its keys for the other.
func SameCoordinator(path string, i *federation.Invitation, methods method.Registry) error {
	old, err := Open(path, methods)
	if err != nil || bytes.Equal(old.Config.Coordinator, i.Coordinator) {
		return nil
	}
	return problem.Problem{File: path, What: "this site has joined another coordinator, with key " +
		old.Coordinator.Name(), Hint: "choose another folder with --dir; or, if that coordinator is no more, " +
		"--new-coordinator: its keys are forgotten, and the ledger goes on"}
}

var errRefused = errors.New("the coordinator refuses")

// request asks the coordinator to be the site, and waits for its answer.
func request(ctx context.Context, i *federation.Invitation, s Secrets, methods method.Registry,
	log func(string)) (g federation.Grant, err error) {
	user, err := nats.PublicOf(s.User)
	if err != nil {
		return g, err
	}
	r := federation.Request{User: user, Program: federation.LocalProgram(methods)}
	if r.Peer, err = s.Key.Peer().MarshalBinary(); err != nil {
		return g, err
	}
	o, err := connection(i.URLs, string(i.Roots), i.JWT, i.Seed, "guest_"+i.ID, log)
	if err != nil {
		return g, err
	}
	conn, err := nats.Connect(o)
	if err != nil {
		return g, err
	}
	defer conn.Close()
	message, err := i.Ask(r)
	if err != nil {
		return g, err
	}
	var seen uint64
	for ctx.Err() == nil {
		err := federation.Put(ctx, conn, federation.RequestKey(i.ID), message)
		if err == nil {
			var value []byte
			if value, seen, err = conn.Wait(ctx, federation.GrantKey(i.ID), seen); err == nil {
				g, err = i.OpenGrant(s.Key, value)
			}
		}
		switch {
		case err != nil: // as if it is for somebody else who has tried the invitation: this request may have been lost
			wire.Pause(ctx, 200*time.Millisecond)
		case g.Refused != "":
			return g, fmt.Errorf("%w: %s\n  hint: ask its people for another invitation", errRefused, g.Refused)
		default:
			return g, nil
		}
	}
	switch trouble := conn.Trouble(); {
	case errors.Is(ctx.Err(), context.Canceled): // by a person
		return g, ctx.Err()
	case trouble != "" && time.Now().Unix() > i.Expires:
		return g, fmt.Errorf("the invitation has expired, by this machine's clock: %s\n  hint: ask the coordinator's "+
			"people for another", trouble)
	case trouble != "":
		return g, fmt.Errorf("the coordinator's broker could not be reached: %s\n  hint: is the coordinator serving, "+
			"and does a proxy stand between? The invitation is still good", trouble)
	}
	return g, errors.New("the coordinator has not answered\n  hint: it has to serve meanwhile; the invitation is " +
		"still good")
}

// WaitForStudies waits until the coordinator has said which studies it has for the
// site, and keeps them; or until ctx ends, without an error.
func (f *Folder) WaitForStudies(ctx context.Context, log func(string)) error {
	o, err := f.options(log)
	if err != nil {
		return err
	}
	conn, err := nats.Connect(o)
	if err != nil {
		return err
	}
	defer conn.Close()
	var seen uint64
	for ctx.Err() == nil {
		value, revision, err := conn.Wait(ctx, federation.BoardKey(f.Config.Site), seen)
		if err != nil {
			wire.Pause(ctx, 200*time.Millisecond)
			continue
		}
		seen = revision
		b, err := federation.OpenBoard(f.Secrets.Key, f.Coordinator, f.Config.Site, value)
		if err != nil {
			continue
		}
		for _, p := range b.Studies {
			if len(p.Plan) > 0 && p.Needs == "" {
				if err := f.keepPlan(p.Study, p.Plan); err != nil {
					return err
				}
			}
		}
		return nil // with studies or none: the board is all that there is now
	}
	return nil
}

// Backup copies what the site must not lose to a folder that does not exist yet:
// keys, policy, store, studies, results and audit log. The receipts are left out: they are
// what tells that a store is older than what others have seen of it.
func (f *Folder) Backup(to string) error {
	own := f.Path
	if _, err := os.Lstat(to); err == nil {
		return problem.Problem{File: to, What: "is there already", Hint: "choose another with --out"}
	}
	for _, path := range []*string{&to, &own} {
		if abs, err := filepath.Abs(*path); err == nil {
			*path = abs
		}
	}
	if strings.HasPrefix(to+string(filepath.Separator), own+string(filepath.Separator)) {
		return problem.Problem{File: to, What: "is in the folder that is to be copied",
			Hint: "choose another, better on another disk"}
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, name := range []string{keyFile, configFile, "policy.yaml", "audit.jsonl"} {
		data, err := os.ReadFile(f.File(name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = files.WriteOwn(filepath.Join(to, name), data)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range []string{"studies", "results"} {
		if err := os.CopyFS(filepath.Join(to, name), os.DirFS(f.File(name))); err != nil &&
			!errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if _, err := os.Stat(f.StorePath()); err == nil {
		if err := sitestore.Copy(f.StorePath(), filepath.Join(to, "site.db")); err != nil {
			return err
		}
	}
	return f.Audit.Add("backup", "", f.Config.Site, "to "+to)
}
