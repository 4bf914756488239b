package discovery

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refreshGroup asks for one group alone and puts it in its place in the latest snapshot.
func (c *Client) refreshGroup(ctx context.Context, name string) error {
	if err := c.takeTurn(ctx); err != nil {
		return err
	}
	defer c.endTurn()
	latest, _ := c.current()
	asked := time.Now()
	group, err := c.fetchGroup(ctx, name)
	if err != nil {
		return fmt.Errorf("discover what %s serves of %s: %w", c.conn.Server(), name, err)
	}
	next := &Snapshot{Taken: asked, Aggregated: latest.Aggregated, Groups: copyGroups(latest.Groups)}
	at := slices.IndexFunc(next.Groups, func(g Group) bool { return g.Name == name })
	switch {
	case group == nil && at >= 0:
		next.Groups = slices.Delete(next.Groups, at, at+1)
	case group != nil && at >= 0:
		next.Groups[at] = *group
	case group != nil:
		next.Groups = append(next.Groups, *group)
	}
	// The cache on disk waits for the whole: its files say when the server was asked.
	if c.publish(next) != latest {
		// The root's own answer is older than this one: nothing may be built from it again.
		delete(c.roots, "/apis")
	}
	return nil
}

// fetchGroup reads a group and its versions, nil where the server does not serve it.
func (c *Client) fetchGroup(ctx context.Context, name string) (*Group, error) {
	path := "/apis/" + name
	answer, err := get(ctx, c.conn, path, plainJSON())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var served metav1.APIGroup
	if err := decodeKind(answer.body, "APIGroup", &served); err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	groups := []Group{groupOf(&served)}
	if err := c.fetchVersions(ctx, groups); err != nil {
		return nil, err
	}
	return &groups[0], nil
}
