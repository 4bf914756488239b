package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

const rbacGroup = "rbac.authorization.k8s.io"

type reconcileOptions struct {
	objects resource.Finder
	write   flags.Write
	output  command.Output
	// removeRules and removeSubjects remove everything missing from the file.
	removeRules, removeSubjects bool
}

// ReconcileCommand returns the command auth reconcile.
func ReconcileCommand(s *command.State) *cobra.Command {
	o := &reconcileOptions{}
	cmd := &cobra.Command{
		Use:   "reconcile -f FILENAME",
		Short: "Reconciles rules for RBAC role, role binding, cluster role, and cluster role binding objects",
		Long: "Create missing roles and bindings, with their namespaces, and add missing rules and subjects to existing ones. " +
			"--remove-extra-permissions and --remove-extra-subjects remove what the file lacks. Objects of other kinds are skipped.",
		Example: "  anyctl auth reconcile -f my-rbac-rules.yaml",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	fs := cmd.Flags()
	o.objects.Connection = s.Connection
	o.objects.Files.In = s.In
	o.objects.Files.AddFlags(fs, "identifying the resource to reconcile")
	o.write.AddDryRunFlag(fs)
	o.output.AddFlags(fs)
	fs.BoolVar(&o.removeRules, "remove-extra-permissions", false, "If true, removes extra permissions added to roles")
	fs.BoolVar(&o.removeSubjects, "remove-extra-subjects", false, "If true, removes extra subjects added to rolebindings")
	return cmd
}

func (o *reconcileOptions) run(ctx context.Context, s *command.State, args []string) error {
	if err := o.write.Complete(s.Errorf); err != nil {
		return err
	}
	switch {
	case o.objects.Files.IsEmpty():
		return errors.New("must specify one of -f and -k")
	case len(args) > 0:
		return errors.New("no arguments are allowed")
	case o.write.DryRun == flags.DryRunServer:
		return errors.New("--dry-run=server for command reconcile is not supported yet")
	}
	if err := o.output.Complete(s.Out, o.write.DryRun); err != nil {
		return err
	}
	var errs []error
	for info, err := range o.objects.Objects(ctx, nil, false) {
		if err == nil {
			err = o.reconcile(ctx, s, info)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (o *reconcileOptions) reconcile(ctx context.Context, s *command.State, info *resource.Info) error {
	kind := info.Object.GroupVersionKind()
	isRole := slices.Contains([]string{"Role", "ClusterRole"}, kind.Kind)
	isBinding := slices.Contains([]string{"RoleBinding", "ClusterRoleBinding"}, kind.Kind)
	if kind.Group != rbacGroup || !isRole && !isBinding {
		return nil
	}
	if kind.Version != "v1" {
		return fmt.Errorf("only %s/v1 is supported: not %s", rbacGroup, kind.GroupVersion())
	}
	if info.Namespace != "" {
		info.Object.SetNamespace(info.Namespace)
	}
	plan := o.binding
	if isRole {
		plan = o.role
	}
	var done *reconciliation
	err := dynamic.RetryOnConflict(ctx, func(ctx context.Context) error {
		existing, err := info.Resource.Get(ctx, info.Name, nil)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if done, err = plan(existing, info.Object); err != nil {
			return err
		}
		return o.store(ctx, s, info, existing, done)
	})
	if err != nil {
		return err
	}
	if err := o.output.Object(done.obj, "reconciled"); err != nil {
		return err
	}
	o.report(s, done)
	return nil
}

// reconciliation is the planned change of a role or binding.
type reconciliation struct {
	obj *unstructured.Object
	// operation is create, update, recreate or "" without a change.
	operation string
	// isProtected means that the stored object opted out.
	isProtected     bool
	missing, extra  []string
	what            string // of missing and extra: rules or subjects
	isExtraReported bool
}

const (
	operationCreate   = "create"
	operationUpdate   = "update"
	operationRecreate = "recreate"
)

// store stores the planned object.
func (o *reconcileOptions) store(ctx context.Context, s *command.State, info *resource.Info, existing *unstructured.Object, done *reconciliation) error {
	if done.isProtected || o.write.DryRun != flags.DryRunNone {
		return nil
	}
	var err error
	switch done.operation {
	case operationRecreate:
		uid := existing.GetUID()
		_, err = info.Resource.Delete(ctx, info.Name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		done.obj, err = info.Resource.Create(ctx, done.obj, nil)
	case operationCreate:
		if err := ensureNamespace(ctx, s, info.Namespace); err != nil {
			return err
		}
		done.obj, err = info.Resource.Create(ctx, done.obj, nil)
	case operationUpdate:
		done.obj, err = info.Resource.Update(ctx, done.obj, nil)
	}
	return err
}

// ensureNamespace creates a missing namespace, if permitted.
func ensureNamespace(ctx context.Context, s *command.State, name string) error {
	if name == "" {
		return nil
	}
	namespaces, err := s.Connection.Handle(ctx, "namespaces")
	if err != nil {
		return err
	}
	if _, err := namespaces.Get(ctx, name, nil); !apierrors.IsNotFound(err) {
		return nil // if it cannot be read, the create of the object has the error
	}
	obj := &unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	if _, err := namespaces.Create(ctx, obj, nil); err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// report prints what was changed, as kubectl does.
func (o *reconcileOptions) report(s *command.State, done *reconciliation) {
	if done.operation == "" {
		return
	}
	caveat := ""
	if done.isProtected {
		caveat = ", but object opted out (rbac.authorization.kubernetes.io/autoupdate: false)"
	}
	s.Errorf("\treconciliation required %s%s", done.operation, caveat)
	lists := [][]string{done.missing, done.extra}
	if !done.isExtraReported {
		lists = lists[:1]
	}
	for i, list := range lists {
		if len(list) > 0 {
			s.Errorf("\t%s", []string{"missing " + done.what + " added:", "extra " + done.what + " removed:"}[i])
		}
		for _, item := range list {
			s.Errorf("\t\t%s", item)
		}
	}
}

// merged returns the stored object with the missing labels and annotations of the expected object.
func merged(existing, expected *unstructured.Object) *reconciliation {
	done := &reconciliation{obj: existing.DeepCopy()}
	done.isProtected = existing.GetAnnotations()["rbac.authorization.kubernetes.io/autoupdate"] == "false"
	for _, field := range []struct {
		get func(*unstructured.Object) map[string]string
		set func(*unstructured.Object, map[string]string)
	}{
		{(*unstructured.Object).GetAnnotations, (*unstructured.Object).SetAnnotations},
		{(*unstructured.Object).GetLabels, (*unstructured.Object).SetLabels},
	} {
		values := field.get(done.obj)
		for key, value := range field.get(expected) {
			if _, exists := values[key]; exists {
				continue // the stored value stays, as in kubectl
			}
			if values == nil {
				values = map[string]string{}
			}
			values[key] = value
			done.operation = operationUpdate
		}
		if len(values) > 0 {
			field.set(done.obj, values)
		}
	}
	return done
}

// subject is the subject of a binding, with the fields of the API in their order: it is printed by %+v.
type subject struct {
	Kind      string `json:"kind"`
	APIGroup  string `json:"apiGroup,omitempty"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// roleReference is the role of a binding.
type roleReference struct {
	APIGroup string `json:"apiGroup"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
}

type binding struct {
	RoleRef  roleReference `json:"roleRef"`
	Subjects []subject     `json:"subjects"`
}

// readBinding returns a binding with the API's defaults.
func readBinding(obj *unstructured.Object) (*binding, error) {
	b, err := unstructured.As[binding](obj)
	if err != nil {
		return nil, err
	}
	b.RoleRef.APIGroup = cmp.Or(b.RoleRef.APIGroup, rbacGroup)
	for i := range b.Subjects {
		if one := &b.Subjects[i]; one.Kind == "User" || one.Kind == "Group" {
			one.APIGroup = cmp.Or(one.APIGroup, rbacGroup)
		}
	}
	return b, nil
}

// binding plans the change of a binding.
func (o *reconcileOptions) binding(existing, expected *unstructured.Object) (*reconciliation, error) {
	want, err := readBinding(expected)
	if err != nil {
		return nil, err
	}
	if existing == nil {
		return &reconciliation{obj: expected.DeepCopy(), operation: operationCreate, what: "subjects", missing: texts(want.Subjects)}, nil
	}
	have, err := readBinding(existing)
	if err != nil {
		return nil, err
	}
	if want.RoleRef != have.RoleRef {
		protected := merged(existing, expected).isProtected
		return &reconciliation{obj: expected.DeepCopy(), operation: operationRecreate, isProtected: protected}, nil
	}
	missing := without(want.Subjects, have.Subjects)
	extra := without(have.Subjects, want.Subjects)
	done := merged(existing, expected)
	done.what = "subjects"
	done.missing = texts(missing)
	done.extra = texts(extra)
	done.isExtraReported = o.removeSubjects
	subjects := append(have.Subjects, missing...)
	if o.removeSubjects {
		subjects = want.Subjects
	}
	if len(missing) == 0 && (len(extra) == 0 || !o.removeSubjects) {
		return done, nil
	}
	done.operation = operationUpdate
	return done, setList(done.obj, subjects, "subjects")
}

// without returns the items of list missing from a second list, each once.
func without(list, other []subject) []subject {
	var result []subject
	for _, item := range list {
		if !slices.Contains(other, item) && !slices.Contains(result, item) {
			result = append(result, item)
		}
	}
	return result
}

func texts[T any](items []T) []string {
	var lines []string
	for _, item := range items {
		lines = append(lines, fmt.Sprintf("%+v", item))
	}
	return lines
}

// setList sets a field to items in the form of decoded JSON.
func setList[T any](obj *unstructured.Object, items []T, field string) error {
	converted, err := unstructured.From(map[string]any{"apiVersion": "v1", "kind": "List", field: items})
	if err != nil {
		return err
	}
	return unstructured.Set(obj, converted.Object[field], field)
}
