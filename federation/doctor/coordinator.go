package doctor

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"parley/engine/nats"
	"parley/federation"
	"parley/federation/coordinator"
	"parley/method"
)

// Coordinator looks at a coordinator: its folder first, then where sites reach it.
func Coordinator(ctx context.Context, path string, methods method.Registry, o Options) Report {
	o = o.complete()
	r := keys(path, filepath.Join(path, "coordinator.key"))
	f, err := coordinator.Open(path, methods)
	if err != nil {
		return append(r, fail("folder", hinted(err, "bring the file back from a backup"), err))
	}
	r = append(r, disk(path)...)
	served := f.Served()
	r = append(r, ok("folder", "sites connect to %s", strings.Join(f.Config.URLs(), " or ")),
		log(filepath.Join(path, "audit.jsonl")))
	r = append(r, studies(f)...)
	r = append(r, registry(f)...)
	if r.OK() { // the status is made of all these files
		r = append(r, sites(f)...)
	}
	roots, err := nats.Roots(f.Roots())
	if err != nil {
		return append(r, fail("tls", "give the right file as --ca, and make the folder again from its key: parley "+
			"coordinator rebuild", err))
	}
	jwt := ""
	user, err := nats.PublicOf(f.Secrets.User)
	if err == nil {
		jwt, err = f.Secrets.Authority.Coordinator(user)
	}
	if err != nil {
		return append(r, fail("credentials", "bring the copy of coordinator.key back", err))
	}
	if len(f.Config.NATS) > 0 {
		return append(r, unique(ways(ctx, f.Config.NATS, roots, o, func(u string) (Report, bool) {
			n := nats.Options{URLs: []string{u}, Roots: roots, JWT: jwt, Seed: f.Secrets.User, Name: "coordinator"}
			return knock(ctx, n, o, func(ctx context.Context, c *nats.Conn) Report { return foreign(ctx, c, u) })
		}))...)
	}
	r = append(r, hosts(ctx, f, o)...)
	for _, w := range []struct{ scheme, listen string }{{"tls", f.Config.Listen}, {"wss", f.Config.WebSocket}} {
		if w.listen != "" {
			r = append(r, port(ctx, f, w.scheme, w.listen, served, roots, o)...)
		}
	}
	if !served {
		return r
	}
	s, err := f.ReadStatus()
	switch {
	case err != nil: // said before
	case s.Broker == "ok":
		r = append(r, ok("broker", "it takes writes"))
	default:
		r = append(r, fail("broker", "make room on its disk; it is then started anew by itself", errors.New(s.Broker)))
	}
	return r
}

// foreign checks that a cluster of somebody else's gives values of the account.
func foreign(ctx context.Context, c *nats.Conn, u string) Report {
	if _, _, err := c.Get(ctx, federation.Control+".health"); err != nil {
		return Report{fail("broker", "the account needs JetStream: ask the people who run the cluster; before the "+
			"first serve the bucket is missing", fmt.Errorf("%s lets this coordinator in, and gives no value: %w", u,
			err))}
	}
	return Report{ok("broker", "%s accepts this coordinator", u)}
}

// hosts looks up the names that sites use.
func hosts(ctx context.Context, f *coordinator.Folder, o Options) (r Report) {
	for _, h := range f.Config.Hosts {
		found := name(ctx, h, false, o)
		if found.Result == failed { // the name servers of sites may know it
			found = note("names", "%s; sites must be able to look it up", found.Found)
		}
		r = append(r, found)
	}
	return r
}

// port checks one place to listen at: free, or held by this coordinator's own
// daemon, whose certificate is then looked at.
func port(ctx context.Context, f *coordinator.Folder, scheme, listen string, served bool, roots *x509.CertPool,
	o Options) Report {
	l, err := net.Listen("tcp", listen)
	if err == nil {
		l.Close()
	}
	switch {
	case err == nil && served:
		return Report{fail("ports", "start parley coordinator serve again",
			fmt.Errorf("a daemon serves the folder, and does not listen at %s", listen))}
	case err == nil:
		return Report{ok("ports", "%s is free; nobody serves the folder", listen)}
	case errors.Is(err, fs.ErrPermission):
		return Report{fail("ports", "allow it (under systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE), or listen at "+
			"a port above 1023", fmt.Errorf("this user may not listen at %s: %w", listen, err))}
	// as Windows says it
	case !errors.Is(err, syscall.EADDRINUSE) && !strings.Contains(err.Error(), "Only one usage of each socket address"):
		return Report{fail("ports", "name an address of this machine in coordinator.json", err)}
	case !served:
		return Report{fail("ports", "end the other program, or choose another port in coordinator.json and invite the "+
			"sites anew", fmt.Errorf("another program listens at %s", listen))}
	}
	here, p, _ := net.SplitHostPort(listen) // the folder was checked when it was opened
	if ip := net.ParseIP(here); here == "" || ip != nil && ip.IsUnspecified() {
		here = "localhost"
	}
	o.Proxy = func(*url.URL) (*url.URL, error) { return nil, nil }
	return touch(ctx, address{url: &url.URL{Scheme: scheme, Host: net.JoinHostPort(f.Config.Hosts[0], p)},
		host: net.JoinHostPort(here, p)}, roots, o)
}

// studies reads every plan.
func studies(f *coordinator.Folder) (r Report) {
	list, err := f.Studies()
	if err != nil {
		return Report{fail("studies", "let the user that runs parley read it", err)}
	}
	for _, digest := range list {
		_, err := f.Plan(digest)
		if err == nil {
			_, err = f.Orders(digest)
		}
		if err == nil {
			_, err = f.Stopped(digest) // reads its state
		}
		if err != nil {
			r = append(r, fail("studies", "bring the folder of the study back, or submit its plan to a folder that "+
				"was rebuilt", err))
		}
	}
	if r == nil {
		r = Report{ok("studies", "plans that can be read: %d", len(list))}
	}
	return r
}

// sites compares programs, as far as sites have told of theirs.
func sites(f *coordinator.Folder) (r Report) {
	s, err := f.ReadStatus()
	if err != nil {
		return Report{status(err)}
	}
	own := federation.LocalProgram(f.Methods)
	told := 0
	for _, st := range s.Sites {
		if st.Text != "" {
			fix := "stop one of the two; parley site doctor at either says which"
			if st.Refused {
				fix = "ask the site's people what else connects with its key; parley coordinator log show " + f.Path +
					" says since when"
			}
			r = append(r, fail("sites", fix, fmt.Errorf("site %s: %s", st.Site, st.Text)))
		}
		if st.Program == nil {
			continue
		}
		told++
		for _, name := range slices.Sorted(maps.Keys(own.Methods)) {
			if needs := federation.VersionMismatch(own, *st.Program, name); needs != "" {
				r = append(r, note("versions", "site %s, in studies of method %s: %s", st.Site, name, needs))
			}
		}
	}
	if r == nil {
		r = Report{ok("versions", "parley %s, protocol %d; sites that have told of theirs, and fit: %d", own.Version,
			own.Protocol, told)}
	}
	for _, st := range s.Studies {
		r = append(r, held(f, st)...)
	}
	return r
}

// held says of a study what keeps it from going on, and who must act.
func held(f *coordinator.Folder, st coordinator.StudyStatus) (r Report) {
	if st.State == coordinator.Stopped {
		return Report{fail("studies", hinted(errors.New(st.Text),
			"mend it, and submit the plan again; or it was aborted, and nothing need be done"),
			fmt.Errorf("study %s has stopped: %s", st.Name, st.Text))}
	}
	for _, x := range st.Sites {
		switch x.State {
		case federation.Unable, coordinator.Misfit:
			r = append(r, fail("studies", hinted(errors.New(x.Text), "site "+x.Site+
				" must mend it: parley site doctor there says more"), fmt.Errorf("study %s: site %s is held up: %s",
				st.Name, x.Site, x.Text)))
		}
	}
	if strings.HasPrefix(st.Text, "it waits for ") {
		r = append(r, fail("studies", "start these sites; or go on without one: parley coordinator drop "+f.Path+" "+
			st.Name+" SITE", fmt.Errorf("study %s: %s", st.Name, st.Text)))
	}
	return r
}

// registry holds what is known of each site against the certificate that it was given.
func registry(f *coordinator.Folder) (r Report) {
	const fix = "bring sites.json back from a backup; or make the folder again from its key, which knows sites by " +
		"their certificates: parley coordinator rebuild"
	known, err := f.Registry()
	if err != nil {
		return Report{fail("sites", fix, err)}
	}
	for _, m := range known.Members {
		c, err := federation.ParseCertificate(m.Certificate)
		if err == nil {
			_, err = c.Verify(f.Secrets.Key.Peer())
		}
		if err == nil && (c.Site != m.Site || c.Serial != m.Serial || c.User != m.User ||
			!bytes.Equal(c.Peer, m.Peer)) {
			err = errors.New("it is not what its certificate says")
		}
		if err != nil {
			r = append(r, fail("sites", fix, fmt.Errorf("sites.json is damaged: site %s: %w", m.Site, err)))
		}
	}
	return r
}
