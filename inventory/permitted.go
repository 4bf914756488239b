package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/parallel"
)

// A kind whose list in all namespaces is forbidden is denied. Its successor is a limited kind, with a stream for each namespace in which
// the user may list it. The namespaces of limited kinds follow the namespaces of the server and the permissions. A limited kind gets a
// successor without limit once the list in all namespaces is permitted.

const (
	// permittedInterval is the shortest interval of checks for changed permissions and namespaces. With many namespaces a check has an
	// interval of a second for each, because it reads the rules of each.
	permittedInterval = 2 * time.Minute
	// maxAccessAge is the age of namespaces and permissions up to which further denied kinds use them.
	maxAccessAge = 30 * time.Second
)

// startKind starts a kind in some namespaces, or in all namespaces for nil.
type startKind func(resource *discovery.Resource, namespaces []string) *kind

// followPermitted keeps the limited kinds current until ctx ends.
func (c *Cache) followPermitted(ctx context.Context, start startKind) {
	timer := time.NewTimer(permittedInterval)
	defer timer.Stop()
	var known *access
	var readAt time.Time
	for {
		isCheck := false
		select {
		case <-c.denied:
		case <-timer.C:
			isCheck = true
		case <-ctx.Done():
			return
		}
		if isCheck || known == nil || time.Since(readAt) > maxAccessAge {
			known = newAccess(c.client, nil)
			readAt = time.Now()
		}
		for _, k := range c.restrictedKinds(isCheck) {
			c.restrict(ctx, k, known, start, isCheck)
		}
		if isCheck {
			timer.Reset(max(permittedInterval, time.Duration(len(known.namespaces))*time.Second))
			known = nil // the rules take memory
		}
		c.mu.Lock()
		c.notify()
		c.mu.Unlock()
	}
}

// restrict applies the permissions to a denied or limited kind.
func (c *Cache) restrict(ctx context.Context, k *kind, known *access, start startKind, isCheck bool) {
	resource := c.resourceOf(k)
	if isCheck && k.isLimited && c.isPermitted(ctx, resource) {
		c.addSuccessor(k, start, nil, 0)
		return
	}
	namespaces, total, err := c.permittedNamespaces(ctx, known, resource)
	switch {
	case err == nil && k.isLimited:
		k.setNamespaces(namespaces, total-len(namespaces))
	case err != nil || len(namespaces) == 0: // all namespaces are tried again
		k.setDecided()
	default:
		c.addSuccessor(k, start, namespaces, total-len(namespaces))
	}
}

// restrictedKinds returns the undecided kinds, and with all also limited kinds and denied kinds without a successor.
func (c *Cache) restrictedKinds(all bool) (restricted []*kind) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, kinds := range []map[schema.GroupResource]*kind{c.kinds, c.next} {
		for name, k := range kinds {
			hasSuccessor := c.next[name] != nil && c.next[name] != k
			denied, decided := k.denial()
			if !hasSuccessor && (denied && !decided || all && (denied || k.isLimited)) {
				restricted = append(restricted, k)
			}
		}
	}
	return restricted
}

func (c *Cache) resourceOf(k *kind) *discovery.Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return k.resource
}

// isPermitted reports whether the user may list a resource in all namespaces, by a request.
func (c *Cache) isPermitted(ctx context.Context, resource *discovery.Resource) bool {
	_, err := c.client.ForAPIResource(resource).AllNamespaces().Metadata().ListPage(ctx, &metav1.ListOptions{Limit: 1})
	return err == nil
}

// permittedNamespaces returns the namespaces in which the user may list a resource, as far as the rules are known, and the number of all
// namespaces.
func (c *Cache) permittedNamespaces(ctx context.Context, known *access, resource *discovery.Resource) (permitted []string, total int, err error) {
	namespaces, err := known.readNamespaces(ctx)
	if err != nil {
		return nil, 0, err
	}
	parallel.Do(cmp.Or(c.opts.Workers, defaultWorkers), len(namespaces), func(i int) {
		known.isDenied(ctx, namespaces[i], resource, true) // reads the rules
	})
	for _, namespace := range namespaces {
		if !known.isDenied(ctx, namespace, resource, true) {
			permitted = append(permitted, namespace)
		}
	}
	return permitted, len(namespaces), ctx.Err()
}

// addSuccessor starts the successor of a kind: in the namespaces, or in all namespaces for nil.
func (c *Cache) addSuccessor(k *kind, start startKind, namespaces []string, excluded int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := k.resource.GVR.GroupResource()
	current := c.kinds[name]
	switch {
	case current != k && c.next[name] != k: // stopped meanwhile
	case current != k && current.isLimited && current.resource.GVR == k.resource.GVR: // permitted to list, but not to watch
		c.replaceNext(name, nil)
	default:
		next := start(k.resource, namespaces)
		next.excluded = excluded
		c.replaceNext(name, next)
		k.setDecided()
	}
}

// setDenied notes whether the list in all namespaces is forbidden, after a change of its stream. k.mu must be held.
func (k *kind) setDenied(s *streamState) {
	k.denied = k.canBeLimited && s.namespace == "" && s.failures >= maxFailures && apierrors.IsForbidden(s.err)
	k.decided = k.decided && k.denied
	if !k.denied {
		return
	}
	select {
	case k.owner.denied <- struct{}{}:
	default:
	}
}

func (k *kind) denial() (denied, decided bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.denied, k.decided
}

// setDecided notes that a denied kind has its successor, or has none because the namespaces are unknown.
func (k *kind) setDecided() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.decided = true
}

// setNamespaces changes the namespaces of a limited kind.
func (k *kind) setNamespaces(namespaces []string, excluded int) {
	k.mu.Lock()
	isSame := len(namespaces) == len(k.streams)
	var streams []*streamState
	for _, namespace := range namespaces {
		s := k.stream(namespace)
		if s == nil {
			s = &streamState{namespace: namespace}
			isSame = false
		}
		streams = append(streams, s)
	}
	k.streams = streams
	k.excluded = excluded
	k.mu.Unlock()
	if !isSame {
		_ = k.cache.SetNamespaces(slices.Clone(namespaces)...) // fails without Options.Namespaces only
	}
}

// forbidden returns the error about the namespaces that the user may not list, or nil. k.mu must be held.
func (k *kind) forbidden() error {
	if k.excluded == 0 {
		return nil
	}
	reason := fmt.Errorf("the user may not list it in %d of %d namespaces", k.excluded, k.excluded+len(k.streams))
	return apierrors.NewForbidden(k.resource.GVR.GroupResource(), "", reason)
}
