package discovery

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/retry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// deniedRetry is after how long a user who may not list definitions asks again.
const deniedRetry = 5 * time.Minute

// definitions are the CustomResourceDefinitions as lookups of unknown names see them.
type definitions struct {
	// turn is held by whoever lists them; it guards the fields below.
	turn  chan struct{}
	asked time.Time
	// resources are those that were listed last.
	resources []schema.GroupResource
	denied    time.Time
	// unserved says since when lookups know of a definition that the server does not serve.
	unserved map[schema.GroupResource]time.Time
}

// unservedDefinitions returns the groups in which target may be and that have definitions which latest lacks, and for how
// long to wait for those. The list of definitions was asked for after called. Where it cannot be had, there is nothing
// to wait for, except that a user may not list definitions.
func (c *Client) unservedDefinitions(ctx context.Context, called time.Time, target *Target, latest *Snapshot) (groups []string, patience time.Duration) {
	served := byGroupResource(latest)
	if !served[schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}] {
		return nil, 0
	}
	d := &c.definitions
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, 0
	}
	if time.Since(d.denied) < deniedRetry {
		return nil, oldDefinition
	}
	if !d.asked.After(called) {
		asked := time.Now()
		listed, err := c.listDefinitions(ctx)
		switch {
		case retry.IsDenied(err):
			d.denied = asked
			return nil, oldDefinition
		case err != nil:
			return nil, 0
		}
		d.asked, d.resources = asked, listed
	}
	unserved := map[schema.GroupResource]time.Time{}
	for _, resource := range d.resources {
		if served[resource] {
			continue
		}
		since, known := d.unserved[resource]
		if !known {
			since = time.Now()
		}
		unserved[resource] = since
		if !target.InGroup(resource.Group) {
			continue
		}
		patience = max(patience, oldDefinition)
		if time.Since(since) < newDefinition {
			patience = newDefinition
		}
		if !slices.Contains(groups, resource.Group) {
			groups = append(groups, resource.Group)
		}
	}
	d.unserved = unserved
	return groups, patience
}

func byGroupResource(s *Snapshot) map[schema.GroupResource]bool {
	served := map[schema.GroupResource]bool{}
	for _, group := range s.Groups {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				served[resource.GVR.GroupResource()] = true
			}
		}
	}
	return served
}

// listDefinitions returns the resources that are defined. A table has their names alone, about 100 bytes each; a
// definition's name is its resource and group.
func (c *Client) listDefinitions(ctx context.Context) ([]schema.GroupResource, error) {
	if err := c.budget.wait(ctx, 1); err != nil {
		return nil, err
	}
	answer, err := c.get(ctx, definitionsPath+"?includeObject=None", http.Header{"Accept": {
		"application/json;as=Table;g=meta.k8s.io;v=v1",
	}})
	if err != nil {
		return nil, err
	}
	var table struct {
		Kind string `json:"kind"`
		Rows []struct {
			Cells []any `json:"cells"`
		} `json:"rows"`
		Columns []metav1.TableColumnDefinition `json:"columnDefinitions"`
	}
	if err := codec.Unmarshal(answer.body, &table); err != nil {
		return nil, fmt.Errorf("GET %s: the answer is no Table: %w", definitionsPath, decodeError(err))
	}
	if err := checkKind(table.Kind, "Table"); err != nil {
		return nil, fmt.Errorf("GET %s: %w", definitionsPath, err)
	}
	name := slices.IndexFunc(table.Columns, func(c metav1.TableColumnDefinition) bool { return strings.EqualFold(c.Name, "name") })
	var resources []schema.GroupResource
	for _, row := range table.Rows {
		if name < 0 || name >= len(row.Cells) {
			continue
		}
		if text, ok := row.Cells[name].(string); ok {
			if resource := schema.ParseGroupResource(text); validateGroup(resource.Group) == nil && resource.Group != "" {
				resources = append(resources, resource)
			}
		}
	}
	return resources, nil
}
