//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/anykind/anykind/dynamic"
)

// inject injects faults, half a minute apart on average, until ctx ends.
func (w *world) inject(ctx context.Context, user *user, rng *rand.Rand) {
	type fault struct {
		name string
		do   func(ctx context.Context) error
	}
	faults := []fault{
		{"API server restarted", func(ctx context.Context) error { return w.control(ctx, "/restart", "component", "kube-apiserver") }},
		{"API server killed", func(ctx context.Context) error {
			return w.control(ctx, "/restart", "component", "kube-apiserver", "kill", "true")
		}},
		{"etcd compacted", func(ctx context.Context) error { return w.control(ctx, "/compact") }},
		{"connections silent", func(ctx context.Context) error {
			return user.proxy.freeze(ctx, time.Duration(10+rng.IntN(30))*time.Second)
		}},
		{"token replaced", func(ctx context.Context) error { return w.replaceToken(ctx, user) }},
		{"definition deleted and created", func(ctx context.Context) error {
			return w.redefine(ctx, w.resources[len(builtIn)+rng.IntN(len(w.resources)-len(builtIn))], time.Duration(1+rng.IntN(10))*time.Second)
		}},
	}
	if w.opts.inventory {
		faults = append(faults,
			fault{"permissions for a group withdrawn", func(ctx context.Context) error { return w.withdraw(ctx, rng) }},
			fault{"20 definitions deleted and created", func(ctx context.Context) error { return w.redefineSeveral(ctx, rng) }},
		)
	}
	for n := 0; ; n++ {
		select {
		case <-time.After(time.Duration(15+rng.IntN(30)) * time.Second):
		case <-ctx.Done():
			return
		}
		if n%len(faults) == 0 { // each fault once a round, in random order
			rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		}
		fault := faults[n%len(faults)]
		// A fault always ends: the server must be available for the comparison.
		if err := fault.do(context.WithoutCancel(ctx)); err != nil {
			progress("%s: %v", fault.name, err)
			w.count("fault that failed: " + fault.name)
			continue
		}
		progress("%s", fault.name)
		w.count(fault.name)
	}
}

func (w *world) count(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[name]++
}

func (w *world) faultCounts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults
}

// control sends a request to the sandbox.
func (w *world) control(ctx context.Context, path string, query ...string) error {
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sandbox"+path+"?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	socket := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(w.opts.sandbox, "control.sock"))
	}}
	response, err := (&http.Client{Transport: socket}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return err
}

// redefine deletes a resource's definition with all of its objects, and creates both again after a while.
func (w *world) redefine(ctx context.Context, r resource, after time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	definitions, err := w.client.Resource(ctx, "customresourcedefinitions")
	if err != nil {
		return err
	}
	name := r.plural + "." + r.group
	if _, err := definitions.Delete(ctx, name, nil); err != nil {
		return err
	}
	if _, err := definitions.Wait(ctx, name, dynamic.Deleted()); err != nil {
		return err
	}
	select {
	case <-time.After(after):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := w.define(ctx, r); err != nil {
		return err
	}
	return w.fill(ctx, r)
}
