// Package doctor looks for what stands in the way of a coordinator or a site: names,
// ports, proxies, certificates, credentials, versions, permissions, disks, and what
// is in the folder. It changes nothing, and may run beside the daemon.
package doctor

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// The results of a check.
const (
	passed   = "ok"
	remarked = "note" // worth knowing, and in nobody's way
	failed   = "fail"
)

// Finding is what one check has found.
type Finding struct {
	Check  string `json:"check"`  // what was looked at, one word
	Result string `json:"result"` // one of the above
	Found  string `json:"found"`
	Fix    string `json:"fix,omitempty"` // what to do, of a failure
}

// Report is what all checks have found, in the order in which they depend on each other.
type Report []Finding

// OK says whether nothing has failed.
func (r Report) OK() bool {
	return !slices.ContainsFunc(r, func(f Finding) bool { return f.Result == failed })
}

// Text writes a line for each finding, and one for each fix.
func (r Report) Text(w io.Writer) error {
	for _, f := range r {
		lines := fmt.Sprintf("%-4s  %s: %s\n", f.Result, f.Check, f.Found)
		if f.Fix != "" {
			lines += "      fix: " + f.Fix + "\n"
		}
		if _, err := io.WriteString(w, lines); err != nil {
			return err
		}
	}
	return nil
}

// Options change how the checks reach others; the zero value is as the daemons do.
type Options struct {
	Proxy  func(*url.URL) (*url.URL, error)                         // nil: as HTTPS_PROXY and NO_PROXY say
	Lookup func(ctx context.Context, host string) ([]string, error) // nil: the system's
	Within time.Duration                                            // how long another machine may take; 0: 15 seconds
}

func (o Options) complete() Options {
	if o.Proxy == nil {
		o.Proxy = httpproxy.FromEnvironment().ProxyFunc()
	}
	if o.Lookup == nil {
		o.Lookup = net.DefaultResolver.LookupHost
	}
	if o.Within == 0 {
		o.Within = 15 * time.Second
	}
	return o
}

func ok(check, format string, a ...any) Finding {
	return Finding{Check: check, Result: passed, Found: fmt.Sprintf(format, a...)}
}

func note(check, format string, a ...any) Finding {
	return Finding{Check: check, Result: remarked, Found: fmt.Sprintf(format, a...)}
}

// fail takes the words of an error apart: what follows "hint:" is what to do, unless
// fix says better.
func fail(check, fix string, err error) Finding {
	found, hint, has := strings.Cut(err.Error(), "\n  hint: ")
	if fix == "" && has {
		fix = hint
	}
	return Finding{Check: check, Result: failed, Found: oneLine(found), Fix: oneLine(fix)}
}

// hinted is what to do about an error that does not say so itself.
func hinted(err error, otherwise string) string {
	if strings.Contains(err.Error(), "\n  hint: ") {
		return ""
	}
	return otherwise
}

// oneLine keeps a finding on its line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
