package libraries

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
)

// measured is a handler that is measured, with the page that a Prometheus server reads.
func measured() http.Handler {
	registry := prometheus.NewRegistry()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests_total"}, []string{"code", "method"})
	running := prometheus.NewGauge(prometheus.GaugeOpts{Name: "requests_running"})
	sizes := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "response_bytes", Buckets: []float64{5, 50}}, nil)
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "request_seconds"}, []string{"code"})
	rooms := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "temperature"}, []string{"room"})
	for i := range 5000 { // a page of more than any buffer
		rooms.WithLabelValues(fmt.Sprint(i)).Set(20)
	}
	registry.MustRegister(requests, running, sizes, took, rooms, collectors.NewGoCollector())

	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "DELETE" {
			w.WriteHeader(http.StatusForbidden)
		}
		fmt.Fprint(w, "Hello, World!")
		w.(http.Flusher).Flush()
	})
	all := http.NewServeMux()
	all.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	all.Handle("/", promhttp.InstrumentHandlerInFlight(running, promhttp.InstrumentHandlerCounter(requests,
		promhttp.InstrumentHandlerDuration(took, promhttp.InstrumentHandlerResponseSize(sizes, hello)))))
	return all
}

func TestPrometheus(t *testing.T) {
	each(t, measured, func(v *web) {
		const clients, times = 10, 20
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for range times {
					a, err := v.try("GET", "/", nil)
					if err == nil {
						_ = v.whole(a)
					}
				}
			})
		}
		all.Wait()
		a := v.ask("DELETE", "/", nil)
		require.Equal(v, 403, a.StatusCode)
		v.whole(a) // the handler flushes before it is counted: it has returned only at the end of its answer
		page := v.get("/metrics")
		for _, line := range []string{
			"# TYPE requests_total counter",
			`requests_total{code="200",method="get"} 200`,
			`requests_total{code="403",method="delete"} 1`,
			"requests_running 0",
			`response_bytes_bucket{le="5"} 0`,
			`response_bytes_bucket{le="50"} 201`,
			"response_bytes_sum 2613",
			`request_seconds_count{code="200"} 200`,
			`temperature{room="4999"} 20`,
			"go_goroutines ",
		} {
			require.Contains(v, page, "\n"+line)
		}
		a = v.ask("GET", "/metrics", nil, "Accept-Encoding", "gzip")
		require.Equal(v, "gzip", a.Header.Get("Content-Encoding"))
		require.Less(v, len(v.whole(a)), len(page)/2)
		a = v.ask("GET", "/metrics", nil, "Accept", "application/openmetrics-text")
		require.Equal(v, 200, a.StatusCode)
		require.Contains(v, v.whole(a), "temperature")
	})
}
