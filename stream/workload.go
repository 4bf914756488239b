package stream

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/anykind/anykind/transport"
)

// podRef is a pod to talk to.
type podRef struct{ path, name string }

// of adds the pod to an error about the object of another name that it was chosen for.
func (p podRef) of(name string, err error) error {
	if err == nil || p.name == name {
		return err
	}
	return fmt.Errorf("pod %q: %w", p.name, err)
}

// resolvePod returns the pod of that name, or one of those that a service or workload of that name selects: a ready one,
// or else the best that accept takes.
func resolvePod(ctx context.Context, target Target, name string, accept func(*pod) bool) (podRef, error) {
	at, err := locate(target, name)
	if err != nil {
		return podRef{}, err
	}
	if at.isPod() {
		return podRef{at.path, name}, nil
	}
	selector, err := readSelector(ctx, target.Conn(), at)
	if err != nil {
		return podRef{}, err
	}
	found, err := pickPod(ctx, target.Conn(), at, selector, accept)
	if err != nil {
		return podRef{}, err
	}
	return podRef{at.pods(found.Metadata.Name), found.Metadata.Name}, nil
}

// readSelector reads the labels of an object's pods.
func readSelector(ctx context.Context, conn *transport.Conn, at *place) (string, error) {
	var found group
	if err := get(ctx, conn, at.path, &found); err != nil {
		return "", err
	}
	return found.selector(at)
}

// isRunning reports whether commands may run in the pod, ready or not.
func isRunning(p *pod) bool {
	return p.Status.Phase == "Running" && p.Metadata.DeletionTimestamp == nil
}

// mayHaveLog reports whether containers of the pod may have begun to run.
func mayHaveLog(p *pod) bool { return p.Status.Phase != "" && p.Status.Phase != "Pending" }

// pickPod returns a ready pod of a selector's, or else a running one, or else one that accept takes.
func pickPod(ctx context.Context, conn *transport.Conn, at *place, selector string, accept func(*pod) bool) (*pod, error) {
	query := url.Values{"labelSelector": {selector}, "limit": {listPage}}
	states := map[string]int{}
	var best *pod
	for {
		var page struct {
			Metadata struct{ Continue string }
			Items    []pod
		}
		if err := getWithin(ctx, conn, at.pods("")+"?"+query.Encode(), maxPage, &page); err != nil {
			return nil, fmt.Errorf("the pods of %s: %w", at, err)
		}
		for i := range page.Items {
			candidate := &page.Items[i]
			if candidate.ready() {
				return candidate, nil
			}
			states[candidate.state()]++
			if accept(candidate) && (best == nil || isRunning(candidate) && !isRunning(best)) {
				best = candidate
			}
		}
		if page.Metadata.Continue == "" {
			break
		}
		query.Set("continue", page.Metadata.Continue)
	}
	switch {
	case best != nil:
		return best, nil
	case len(states) == 0:
		return nil, fmt.Errorf("%s has no pods (%s)", at, selector)
	default:
		return nil, fmt.Errorf("no pod of %s runs: %s", at, strings.TrimPrefix(fmt.Sprint(states), "map"))
	}
}
