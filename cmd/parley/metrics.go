package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley/federation"
	"parley/federation/coordinator"
	"parley/federation/live"
	"parley/federation/site"
	"parley/internal/files"
	"parley/privacy/ledger"
	"parley/sitestore"
)

// monitor counts what a daemon does, for Prometheus and for a health check. It
// tells of no study by name, and of no subject.
type monitor struct {
	registry *prometheus.Registry
	rounds   prometheus.Counter
	answers  prometheus.Counter
	stored   atomic.Uint64
	embedded sync.Once // a broker that has stored something
	ready    prometheus.Gauge

	mu sync.Mutex
	ok bool
}

func newMonitor(state gauges) *monitor {
	m := &monitor{
		registry: prometheus.NewRegistry(),
		rounds: prometheus.NewCounter(prometheus.CounterOpts{Name: "parley_rounds_total",
			Help: "Rounds that have ended."}),
		answers: prometheus.NewCounter(prometheus.CounterOpts{Name: "parley_tasks_total",
			Help: "Tasks that were handled."}),
		ready: prometheus.NewGauge(prometheus.GaugeOpts{Name: "parley_ready",
			Help: "1 if the broker takes writes (coordinator), or is connected (site)."}),
	}
	process := collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})
	m.registry.MustRegister(m.rounds, m.answers, m.ready, state, process)
	return m
}

// Round, Health, Answered and Connected implement the watchers of both daemons.
func (m *monitor) Round(string)      { m.rounds.Inc() }
func (m *monitor) Answered(string)   { m.answers.Inc() }
func (m *monitor) Connected(ok bool) { m.Health(ok) }
func (m *monitor) Stored(n uint64) {
	m.stored.Store(n)
	m.embedded.Do(func() {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "parley_broker_writes_total",
			Help: "Values that the embedded broker has stored."}, func() float64 { return float64(m.stored.Load()) }))
	})
}
func (m *monitor) Health(ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ok = ok
	if ok {
		m.ready.Set(1)
	} else {
		m.ready.Set(0)
	}
}

func (m *monitor) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	ok := m.ok
	m.mu.Unlock()
	if !ok {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// monitor serves metrics if the flags ask for them, until ctx ends.
func (f *daemonFlags) monitor(ctx context.Context, state gauges) (*monitor, error) {
	m := newMonitor(state)
	if f.metrics == "" {
		return m, nil
	}
	if err := live.Loopback(f.metrics); err != nil {
		return nil, &usageError{fmt.Errorf("--metrics %w", err)}
	}
	listener, err := net.Listen("tcp", f.metrics)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(m.registry,
		promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	mux.Handle("/healthz", m)
	server := &http.Server{Handler: live.Guard(listener.Addr().String(), mux), ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener)
	context.AfterFunc(ctx, func() { server.Close() })
	return m, nil
}

// gauges say at each scrape how a folder stands: set is called with name, help, value, and labels in pairs.
type gauges func(set func(name, help string, value float64, labels ...string)) error

// Describe implements [prometheus.Collector]: what there is depends on the sites.
func (gauges) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (g gauges) Collect(out chan<- prometheus.Metric) {
	err := g(func(name, help string, value float64, labels ...string) {
		var names, values []string
		for pair := range slices.Chunk(labels, 2) {
			names, values = append(names, pair[0]), append(values, pair[1])
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("parley_"+name, help, names, nil),
			prometheus.GaugeValue, value, values...)
	})
	if err != nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
	}
}

const (
	helpStudies = "Studies by where they stand."
	helpFree    = "Bytes that the folder's disk has left."
)

// coordinatorGauges are those of a coordinator's folder. They name sites, and no study.
func coordinatorGauges(f *coordinator.Folder) gauges {
	return func(set func(string, string, float64, ...string)) error {
		s, err := f.ReadStatus()
		if err != nil {
			return err
		}
		waiting, studies := map[string]float64{}, map[string]float64{}
		for _, st := range s.Studies {
			studies[st.State]++
			for _, at := range st.Sites {
				switch at.State {
				case coordinator.Asked, coordinator.Delivered, federation.Computing, federation.Pending,
					federation.Unable, coordinator.Misfit:
					if at.Since != nil {
						waiting[at.Site] = max(waiting[at.Site], time.Since(*at.Since).Seconds())
					}
				}
			}
		}
		for state, n := range studies {
			set("studies", helpStudies, n, "state", state)
		}
		for _, st := range s.Sites {
			if st.LastSeen != nil {
				set("site_last_seen_timestamp_seconds", "When the site was heard last.", float64(st.LastSeen.Unix()),
					"site", st.Site)
			}
			set("site_answer_seconds", "How long the site's last answer took.", st.Took, "site", st.Site)
			set("site_refused", "1 if the embedded broker refuses the site for a while: it took too much.",
				map[bool]float64{true: 1}[st.Refused], "site", st.Site)
			set("site_waiting_seconds", "For how long some study has waited for the site, or for its people; 0 if "+
				"none does.", waiting[st.Site], "site", st.Site)
		}
		var broker int64
		filepath.WalkDir(f.File("broker"), func(_ string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				if info, err := e.Info(); err == nil { // it may have gone meanwhile
					broker += info.Size()
				}
			}
			return nil
		})
		set("broker_bytes", "Bytes of the embedded broker's files.", float64(broker))
		free, err := files.Free(f.Path)
		set("disk_free_bytes", helpFree, float64(free))
		return err
	}
}

// siteGauges are those of a site's folder, for the site's own people.
func siteGauges(f *site.Folder) gauges {
	return func(set func(string, string, float64, ...string)) error {
		s, err := f.ReadStatus()
		if err != nil {
			return err
		}
		studies := map[string]float64{}
		for _, st := range s.Studies {
			studies[st.State]++
		}
		for state, n := range studies {
			set("studies", helpStudies, n, "state", state)
		}
		rules, err := f.Policy()
		if err != nil {
			return err
		}
		charged := &ledger.Ledger{}
		err = sitestore.Look(f.StorePath(), func(s *sitestore.Store) (err error) {
			charged, err = ledger.Read(s)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // there is none before the first task
			return err
		}
		left, err := charged.Against(rules)
		if err != nil {
			return err
		}
		for _, l := range left {
			set("lifetime_left_ratio", "Share of the policy's lifetime that is left.", l.Left, "adjacency",
				string(l.Adjacency))
		}
		free, err := files.Free(f.Path)
		set("disk_free_bytes", helpFree, float64(free))
		return err
	}
}
