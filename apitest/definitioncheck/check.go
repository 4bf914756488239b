package definitioncheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

const (
	defaultMaxFindings = 1000
	defaultMaxExamples = 10
)

// Options configure [Check]. The zero value and nil are the defaults.
type Options struct {
	// Rules compiles CEL rules, such as cel.Rules of package apitest/cel. nil leaves them out: see Report.NotChecked.
	Rules apitest.RuleCompiler
	// MaxFindings is the maximum number of findings of objects. 0 means 1000.
	MaxFindings int
	// MaxExamples is the maximum number of objects named by a finding. 0 means 10.
	MaxExamples int
	// OnProgress is called after each page with the number of checked objects of a version and their total.
	OnProgress func(version string, done, total int)
}

// Check compares a new definition with the live objects. definition is the whole definition as it will be written. Without a
// live definition of its name only the definition is checked. Errors are those of requests; findings are no errors.
func Check(ctx context.Context, client *dynamic.Client, definition *unstructured.Object, opts *Options) (*Report, error) {
	c := &checker{client: client, report: &Report{Name: definition.GetName()}}
	if opts != nil {
		c.opts = *opts
	}
	c.findings = &collector{
		report: c.report, groups: map[groupKey]*Finding{},
		maxFindings: cmp.Or(max(c.opts.MaxFindings, 0), defaultMaxFindings), maxExamples: cmp.Or(max(c.opts.MaxExamples, 0), defaultMaxExamples),
	}
	if err := c.run(ctx, definition); err != nil {
		return nil, fmt.Errorf("check %s: %w", definition.GetName(), err)
	}
	c.report.sort()
	return c.report, nil
}

type checker struct {
	client   *dynamic.Client
	opts     Options
	report   *Report
	findings *collector
	old, new *definition
}

func (c *checker) run(ctx context.Context, proposed *unstructured.Object) error {
	definitions, err := c.client.Resource(ctx, "customresourcedefinitions.apiextensions.k8s.io")
	if err != nil {
		return err
	}
	live, err := definitions.Get(ctx, proposed.GetName(), nil)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	accepted, err := c.dryRun(ctx, definitions, proposed, live)
	if err != nil {
		return err
	}
	c.new = newDefinition(accepted.Object, c.opts.Rules)
	if c.report.IsNew = live == nil; c.report.IsNew {
		return nil
	}
	c.old = newDefinition(live.Object, nil)
	c.compareDefinitions()
	c.addNotChecked()
	for _, version := range c.listedVersions() {
		if err := c.checkObjects(ctx, version); err != nil {
			return err
		}
	}
	return nil
}

// dryRun writes the definition in a dry run and returns it with the server's defaults. The findings have the server's errors.
func (c *checker) dryRun(ctx context.Context, definitions *dynamic.Resource, proposed, live *unstructured.Object) (*unstructured.Object, error) {
	var accepted *unstructured.Object
	var err error
	if live == nil {
		accepted, err = definitions.Create(ctx, proposed, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	} else {
		proposed = proposed.DeepCopy()
		proposed.SetResourceVersion(live.GetResourceVersion())
		accepted, err = definitions.Update(ctx, proposed, &metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	}
	switch {
	case err == nil:
		return accepted, nil
	case apierrors.IsForbidden(err):
		c.notChecked("the server's validation of the definition: %v", err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		c.addRejection(err)
	default:
		return nil, err
	}
	proposed = proposed.DeepCopy()
	setDefaults(proposed.Object)
	return proposed, nil
}

// addRejection adds a finding for each cause of the server's error.
func (c *checker) addRejection(err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		c.definitionFinding(Rejected, "", "", "%v", err)
		return
	}
	for _, cause := range status.Status().Details.Causes {
		c.definitionFinding(Rejected, "", cause.Field, "%s", cause.Message)
	}
}

func (c *checker) definitionFinding(kind Type, version, path, format string, args ...any) {
	c.report.Definition = append(c.report.Definition, &Finding{Type: kind, Version: version, Path: path, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) notChecked(format string, args ...any) {
	c.report.NotChecked = append(c.report.NotChecked, fmt.Sprintf(format, args...))
}

// listedVersions returns the versions in which the objects are listed.
func (c *checker) listedVersions() []string {
	served := c.old.served()
	if len(served) == 0 {
		return nil
	}
	if !c.hasWebhook() {
		return served[:1]
	}
	var listed []string
	for _, version := range served {
		if v := c.new.versions[version]; v != nil && v.isServed {
			listed = append(listed, version)
		}
	}
	return listed
}

func (c *checker) hasWebhook() bool { return c.old.hasWebhook || c.new.hasWebhook }

// checkObjects lists all objects in a version and checks them.
func (c *checker) checkObjects(ctx context.Context, version string) error {
	gv := schema.GroupVersion{Group: c.old.group, Version: version}
	done := 0
	objects := c.client.ForAPIResource(&discovery.Resource{
		GVR: gv.WithResource(c.old.plural), GVK: gv.WithKind(c.old.kind), Namespaced: c.old.isNamespaced,
	}).AllNamespaces().WithPageOptions(&dynamic.PageOptions{
		OnExpired: func(error) dynamic.ExpiryPolicy { return dynamic.ExpiryContinue },
		OnPage: func(meta metav1.ListMeta) {
			total := done
			if meta.RemainingItemCount != nil {
				total += int(*meta.RemainingItemCount)
			}
			if c.opts.OnProgress != nil {
				c.opts.OnProgress(version, done, total)
			}
		},
	})
	for obj, err := range objects.List(ctx, nil) {
		if err != nil {
			return err
		}
		done++
		c.findings.next(types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()})
		c.checkObject(ctx, version, obj.Object)
	}
	c.report.Objects = max(c.report.Objects, done)
	return nil
}
