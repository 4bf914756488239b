package discovery

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// definers are the resources whose objects decide what a server serves. Their names end in the group that they are
// about: widgets.example.com, v1.example.com.
var definers = []string{
	"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
	"/apis/apiregistration.k8s.io/v1/apiservices",
}

// Live keeps the snapshot current until ctx ends: it watches CustomResourceDefinitions and APIServices and asks anew
// for the groups that they are about, and every half minute for the whole, which costs two empty answers where nothing
// has changed: the resources of other API servers change without either.
//
// It survives whatever happens to its connections, and returns ctx's error, or the server's where trying again is no
// use: a *apierrors.StatusError, which apierrors.IsForbidden knows where the user may not watch those two. A new group
// stands behind all others until the whole is asked for again, some seconds later.
func (c *Client) Live(ctx context.Context) error {
	if c.conn == nil {
		return errOffline
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := c.untilAnswered(ctx, func() error { _, err := c.Refresh(ctx); return err }); err != nil {
		return err
	}
	touched := make(chan string)
	var all sync.WaitGroup
	for _, path := range definers {
		all.Go(func() {
			if err := c.watchDefiner(ctx, path, touched); err != nil {
				cancel(err)
			}
		})
	}
	all.Go(func() { c.refreshTouched(ctx, touched) })
	all.Wait()
	return context.Cause(ctx)
}

// untilAnswered repeats a call, less and less often, until it succeeds or cannot succeed.
func (c *Client) untilAnswered(ctx context.Context, call func() error) error {
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		err := call()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isFinal(err):
			return err
		}
		if err := pause(ctx, wait+rand.N(wait)); err != nil {
			return err
		}
	}
}

// isFinal says whether the server would answer the same the next time.
func isFinal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusRequestTimeout, http.StatusGone, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// followUps are when a group is asked for again after something about it has changed: discovery documents follow a
// moment after the objects, and nothing says when.
var followUps = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second}

// The whole is asked for some seconds after the last change, which puts new groups in their places, and regularly.
const (
	settled   = 5 * time.Second
	regularly = 30 * time.Second
)

// everything, in place of a group, is the whole.
const everything = "*"

// refreshTouched asks for the groups that come out of touched.
func (c *Client) refreshTouched(ctx context.Context, touched <-chan string) {
	due := schedule{groups: map[string]appointment{}, whole: time.Now().Add(regularly)}
	timer := time.NewTimer(regularly)
	defer timer.Stop()
	for {
		timer.Reset(due.next(time.Now()))
		select {
		case <-ctx.Done():
			return
		case group := <-touched:
			due.touch(group, time.Now())
		case <-timer.C:
			groups, whole := due.take(time.Now())
			c.refreshDue(ctx, groups, whole || len(groups) > manyGroups || slices.Contains(groups, everything))
		}
	}
}

// manyGroups are more than one request for the whole costs.
const manyGroups = 10

// refreshDue asks for some groups or for the whole. What fails is tried again at the next follow-up, and at last with
// the whole.
func (c *Client) refreshDue(ctx context.Context, groups []string, whole bool) {
	if whole {
		_, _ = c.Refresh(ctx)
		return
	}
	for _, group := range groups {
		_ = c.refreshGroup(ctx, group)
	}
}

// schedule is when which group is to be asked for.
type schedule struct {
	groups map[string]appointment
	whole  time.Time
}

type appointment struct {
	at   time.Time
	step int // in followUps
}

func (s *schedule) touch(group string, now time.Time) {
	// An appointment that is near stays, so that a group which changes all the time is asked for, too.
	if old, waiting := s.groups[group]; !waiting || old.step > 0 {
		s.groups[group] = appointment{at: now.Add(followUps[0])}
	}
	s.whole = now.Add(settled)
}

// next is how long there is nothing to do.
func (s *schedule) next(now time.Time) time.Duration {
	wait := s.whole.Sub(now)
	for _, one := range s.groups {
		wait = min(wait, one.at.Sub(now))
	}
	return max(wait, 0)
}

// take removes what is due, and makes the appointments after it.
func (s *schedule) take(now time.Time) (groups []string, whole bool) {
	for group, one := range s.groups {
		if one.at.After(now) {
			continue
		}
		groups = append(groups, group)
		if one.step+1 == len(followUps) {
			delete(s.groups, group)
			continue
		}
		s.groups[group] = appointment{at: now.Add(followUps[one.step+1] - followUps[one.step]), step: one.step + 1}
	}
	if !s.whole.After(now) {
		// Not all clients at once.
		s.whole, whole = now.Add(regularly+rand.N(regularly/5)), true //nolint:gosec // spread, not secrecy
	}
	return groups, whole
}
