package discovery

import (
	"context"
	"fmt"
	"time"

	"github.com/anykind/anykind/internal/retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// refreshGroup asks for one group alone and puts it in its place in the latest snapshot. It waits for nobody who asks for
// something else.
func (c *Client) refreshGroup(ctx context.Context, name string) error {
	asked := time.Now()
	group, err := c.fetchGroup(ctx, name)
	if err != nil {
		return fmt.Errorf("discover what %s serves of %s: %w", c.conn.Server(), name, retry.WithContextError(ctx, err))
	}
	// The cache on disk waits for the whole: its files say when the server was asked.
	c.amend(name, asked, func(*Group) *Group { return group })
	return nil
}

// fetchGroup reads a group and its versions, nil where the server does not serve it.
func (c *Client) fetchGroup(ctx context.Context, name string) (*Group, error) {
	path := "/apis/" + name
	answer, err := c.get(ctx, path, plainJSON())
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
	if served.Name != name {
		return nil, fmt.Errorf("GET %s: the answer is the group %s", path, quoted(served.Name))
	}
	group := groupOf(&served)
	group.Versions, _ = rejectVersions(group.Versions)
	if len(group.Versions) == 0 {
		return nil, nil
	}
	late := make([]schema.GroupVersion, 0, len(group.Versions))
	for _, version := range group.Versions {
		late = append(late, schema.GroupVersion{Group: name, Version: version.Name})
	}
	c.fetchEach(ctx, late, func(i int, resources []*Resource, err error) {
		group.Versions[i].Resources, group.Versions[i].Err = resources, err
	})
	return &group, retry.ContextError(ctx)
}
