package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	emptyIndex = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[]}`
	coreIndex  = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":""},"versions":[{"version":"v1","freshness":"Current",` +
		`"resources":[{"resource":"pods","singularResource":"pod","scope":"Namespaced","responseKind":{"group":"","version":"v1","kind":"Pod"},"verbs":["get","list","watch"]}]}]}]}`
	initialEventsEnd = `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1000000","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
)

// address is the first line of output of the server's process.
type address struct {
	URL string
	CA  []byte
}

// clusterServer is one process for the API servers of all clusters: /c/N is the URL of cluster N. It stores no pod.
type clusterServer struct {
	pods int // of each cluster
	rate int // changes a second, of all clusters

	mu      sync.Mutex
	watches map[int]chan []byte
	version int
}

// serve serves until the standard input is closed. A line of input begins the changes.
func serve(pods, rate int) error {
	s := &clusterServer{pods: pods, rate: rate, watches: map[int]chan []byte{}, version: 1_000_000}
	server := httptest.NewUnstartedServer(http.StripPrefix("/c", s))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	if err := json.NewEncoder(os.Stdout).Encode(address{server.URL, server.Certificate().Raw}); err != nil {
		return err
	}
	buffer := make([]byte, 1)
	for {
		if _, err := os.Stdin.Read(buffer); err != nil {
			return nil //nolint:nilerr // the end of the parent
		}
		go s.change()
	}
}

// ServeHTTP serves /N/PATH.
func (s *clusterServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	cluster, err := strconv.Atoi(number)
	switch {
	case err != nil:
		http.NotFound(w, r)
	case path == "api" || path == "apis":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = io.WriteString(w, map[string]string{"api": coreIndex, "apis": emptyIndex}[path])
	case path == "api/v1/pods" && r.URL.Query().Get("watch") != "":
		s.watch(w, r, cluster)
	default:
		http.NotFound(w, r)
	}
}

// watch sends the initial events and the changes of a cluster.
func (s *clusterServer) watch(w http.ResponseWriter, r *http.Request, cluster int) {
	w.Header().Set("Content-Type", "application/json")
	for i := range s.pods {
		if _, err := fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", podJSON(cluster, i, i+1, 0)); err != nil {
			return
		}
	}
	changes := make(chan []byte, 1000)
	s.mu.Lock()
	s.watches[cluster] = changes
	s.mu.Unlock()
	_, _ = io.WriteString(w, initialEventsEnd)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case event := <-changes:
			_, _ = w.Write(event)
		case <-r.Context().Done():
			return
		}
	}
}

// change changes random pods of random clusters at the rate.
func (s *clusterServer) change() {
	s.mu.Lock()
	clusters := make([]int, 0, len(s.watches))
	for cluster := range s.watches {
		clusters = append(clusters, cluster)
	}
	s.mu.Unlock()
	start := time.Now()
	for n := 1; ; n++ {
		time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / time.Duration(s.rate))))
		cluster := clusters[rand.IntN(len(clusters))]
		s.mu.Lock()
		s.version++
		version := s.version
		changes := s.watches[cluster]
		s.mu.Unlock()
		pod := podJSON(cluster, rand.IntN(s.pods), version, time.Now().UnixNano())
		changes <- fmt.Appendf(nil, `{"type":"MODIFIED","object":%s}`+"\n", pod)
	}
}
