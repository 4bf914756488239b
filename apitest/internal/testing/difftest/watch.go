package difftest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// sentinelTimeout is the maximum wait for the sentinel of a watch.
const sentinelTimeout = time.Minute

// openWatch is a watch read concurrently with the operations during it.
type openWatch struct {
	index    int
	op       Operation
	response *http.Response
	arrived  chan string
	events   []string
}

func (p *player) openWatch(i int, op Operation, target string) {
	response, err := p.server.open(p.t, op.Method, target, op.Writer, "", op.Accept, "")
	if err != nil {
		p.t.Fatalf("watch %s: %v", target, err)
	}
	p.script.responses[i] = Response{
		Status: response.StatusCode, ContentType: response.Header.Get("Content-Type"), Warnings: response.Header.Values("Warning"),
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		p.script.responses[i].Body = string(text)
		return
	}
	w := &openWatch{index: i, op: op, response: response, arrived: make(chan string, 10000)}
	go w.read()
	p.watches = append(p.watches, w)
}

// read sends the lines of the response to arrived and closes it at the end.
func (w *openWatch) read() {
	defer close(w.arrived)
	lines := bufio.NewReader(w.response.Body)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			w.arrived <- line
		}
		if err != nil {
			return
		}
	}
}

// closeWatches ends the watches with LastOperation <= id, each after its sentinel.
func (p *player) closeWatches(id int) {
	p.watches = slices.DeleteFunc(p.watches, func(w *openWatch) bool {
		if w.op.LastOperation <= id {
			p.closeWatch(w)
			return true
		}
		return false
	})
}

func (p *player) closeWatch(w *openWatch) {
	var sentinel struct {
		Metadata struct {
			Name        string
			Annotations struct{ Sentinel string }
		}
	}
	_ = json.Unmarshal([]byte(p.resolve(w.op.Sentinel)), &sentinel)
	path := p.resolve(w.op.SentinelPath)
	object := path + "/" + sentinel.Metadata.Name
	var response Response
	if w.op.SentinelPatch != "" {
		response = p.server.do(p.t, http.MethodPatch, object, "", mergePatch, "", w.op.SentinelPatch)
	}
	if response.Status != http.StatusOK {
		response = p.server.do(p.t, http.MethodPost, path, "", jsonType, "", p.resolve(w.op.Sentinel))
	}
	if response.Status == http.StatusCreated || response.Status == http.StatusOK {
		w.await(sentinel.Metadata.Annotations.Sentinel)
	}
	_ = w.response.Body.Close()
	for range w.arrived { // until it is closed
	}
	if response.Status == http.StatusCreated {
		p.server.do(p.t, http.MethodDelete, object+"?gracePeriodSeconds=0", "", "", "", "")
	} else if response.Status != http.StatusOK {
		w.events = append(w.events, fmt.Sprintf(`{"type":"SENTINEL","status":%d}`, response.Status))
	}
	p.script.responses[w.index].Events = w.events
}

// await collects events until the sentinel or the end of the watch.
func (w *openWatch) await(mark string) {
	timeout := time.NewTimer(sentinelTimeout)
	defer timeout.Stop()
	for {
		select {
		case line, open := <-w.arrived:
			if !open {
				return
			}
			w.events = append(w.events, line)
			if strings.Contains(line, `"sentinel":"`+mark+`"`) {
				return
			}
		case <-timeout.C:
			w.events = append(w.events, `{"type":"TIMEOUT"}`)
			return
		}
	}
}
