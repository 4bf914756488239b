package discovery

import (
	"context"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A CustomResourceDefinition is Established some milliseconds before discovery has its resource, on a server of several
// longer. So a name that is missing is looked for again while definitions that may be meant are not served.
const (
	// newDefinition is for how long lookups wait for a definition that was not there before.
	newDefinition = time.Second
	// oldDefinition is for how long each waits for one that is still not served then, or where the user may not list
	// definitions.
	oldDefinition = 100 * time.Millisecond
)

var recheck = retry.Backoff{Min: 10 * time.Millisecond, Max: 250 * time.Millisecond}

// Target says what [Client.Search] looks for.
type Target struct {
	// Found reports whether a snapshot has it.
	Found func(*Snapshot) bool
	// InGroup reports whether it may be in a group.
	InGroup func(name string) bool
}

// Search returns a snapshot in which target is found, or the latest one if the server does not serve it now. It asks the
// server again if the latest snapshot lacks the target, waits for group versions that are slow to answer only if the
// target may be in them, and for a CustomResourceDefinition that may be the target's and is not served yet a second at
// most.
//
// Searches cause at most 300 requests at once and 50 a second. A server without aggregated discovery, where a refresh
// takes a request for each group version, is asked for less when that is spent; a snapshot some seconds old then counts
// as the latest.
func (c *Client) Search(ctx context.Context, target *Target) (*Snapshot, error) {
	called := time.Now()
	latest := c.first()
	switch {
	case latest != nil && (c.conn == nil || target.Found(latest)):
		return latest, nil
	case c.conn == nil:
		return nil, errOffline
	}
	latest, err := c.refreshForSearch(ctx, called)
	if err != nil || target.Found(latest) {
		return latest, err
	}
	late := lateVersions(latest, func(gv schema.GroupVersion) bool { return target.InGroup(gv.Group) && !c.isHanging(gv) })
	if len(late) > 0 {
		latest, err = c.fetchLate(ctx, late)
		if err != nil || target.Found(latest) {
			return latest, err
		}
	}
	return c.awaitDefinitions(ctx, called, target, latest)
}

// refreshForSearch refreshes the snapshot as far as the budget allows.
func (c *Client) refreshForSearch(ctx context.Context, called time.Time) (*Snapshot, error) {
	return c.refresh(ctx, called, func() (bool, error) {
		latest := c.Latest()
		if latest == nil || latest.Aggregated {
			return true, c.budget.wait(ctx, 2)
		}
		requests := 2
		for _, group := range latest.Groups {
			requests += len(group.Versions)
		}
		// Where one refresh exceeds the whole budget, a full one suffices.
		return c.budget.take(min(requests, budgetBurst)), nil
	})
}

// awaitDefinitions asks again while a definition that may be target's is not served.
func (c *Client) awaitDefinitions(ctx context.Context, called time.Time, target *Target, latest *Snapshot) (*Snapshot, error) {
	unserved, patience := c.unservedDefinitions(ctx, called, target, latest)
	deadline := time.Now().Add(patience)
	for n := 1; patience > 0 && time.Now().Before(deadline); n++ {
		if err := retry.Sleep(ctx, min(recheck.Delay(n), time.Until(deadline))); err != nil {
			return nil, c.discoverError(ctx, err)
		}
		var err error
		if latest, err = c.refreshGroups(ctx, latest, unserved); err != nil || target.Found(latest) {
			return latest, err
		}
	}
	return latest, nil
}

// refreshGroups asks for groups, or for everything where that is no more requests.
func (c *Client) refreshGroups(ctx context.Context, latest *Snapshot, groups []string) (*Snapshot, error) {
	if latest.Aggregated || len(groups) == 0 {
		return c.refreshForSearch(ctx, time.Now())
	}
	for _, group := range groups[:min(len(groups), manyGroups)] {
		if err := c.budget.wait(ctx, 2); err != nil {
			return nil, c.discoverError(ctx, err)
		}
		if err := c.refreshGroup(ctx, group); err != nil {
			return nil, err
		}
	}
	return c.Latest(), nil
}
