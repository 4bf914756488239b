// Package validate implements validate.
package validate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// Commands returns the package's commands.
func Commands(s *command.State) []*cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "validate -f FILENAME",
		Short: "Validate manifests by the server's schemas, also offline",
		Long: "Validate manifests by the server's schemas: unknown fields, types, required fields, enums, patterns, formats, bounds and keys of " +
			"lists. Definitions among the files count. Deprecated versions and fields are warnings. The server is asked for schemas and, " +
			"of each kind, for a list with one object, because only its response says that a version is deprecated; with --schemas nothing is sent. The output names what was not checked: rules of x-kubernetes-validations, and the validation in Go of built-in kinds, " +
			"for which a dry run is the check.\n\nWith several --schemas, the files are validated for several versions of a server at once.\n\n" +
			"The exit status is 1 if an object is not valid, and 2 if an object could not be checked: a broken file, a kind without a schema.",
		Example: "  anyctl validate -f ./deploy\n  anyctl validate --save-schemas schemas/1.37\n" +
			"  anyctl validate -f ./deploy --schemas schemas/1.35 --schemas schemas/1.37 -o github",
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	fs := cmd.Flags()
	o.files.AddFlags(fs, "containing the objects to validate")
	fs.StringSliceVar(&o.schemas, "schemas", nil, "Folder with saved schemas to validate by, in place of the server's. Can be repeated.")
	fs.StringVar(&o.save, "save-schemas", "", "Write the server's schemas to a folder for --schemas.")
	fs.StringVarP(&o.output, "output", "o", "text", "Output format. One of: text, json, sarif, github.")
	return []*cobra.Command{cmd}
}

type options struct {
	files   flags.Files
	schemas []string
	save    string
	output  string
}

const (
	invalidCode    = 1
	notCheckedCode = 2 // also for errors
)

func (o *options) run(ctx context.Context, s *command.State, args []string) error {
	write := writers()[o.output]
	switch {
	case write == nil:
		return notChecked(fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: github,json,sarif,text", o.output))
	case len(args) > 0:
		_, err := resource.ReadFiles(ctx, &o.files, args)
		return notChecked(err)
	case o.files.IsEmpty() && o.save == "":
		return notChecked(errors.New("must specify -f or --save-schemas"))
	}
	if o.save != "" {
		if err := save(ctx, s, o.save); err != nil || o.files.IsEmpty() {
			return notChecked(err)
		}
	}
	o.files.In = s.In
	o.files.FieldLines = true
	objects := o.files.All(ctx)
	defined, err := definitions(objects)
	if err != nil {
		return notChecked(err)
	}
	servers, err := o.servers(ctx, s, defined)
	if err != nil {
		return notChecked(err)
	}
	r, broken, err := validate(ctx, servers, objects)
	if err != nil {
		return notChecked(err)
	}
	if err := write(s.Out, r); err != nil {
		return err
	}
	switch {
	case r.Invalid > 0:
		return errors.Join(&exit.Error{Code: invalidCode}, broken) // the output has the problems
	case broken != nil:
		return notChecked(broken)
	case r.WithoutSchema > 0:
		return &exit.Error{Code: notCheckedCode}
	}
	return nil
}

func notChecked(err error) error {
	if err == nil {
		return nil
	}
	return &exit.Error{Code: notCheckedCode, Err: err}
}

func save(ctx context.Context, s *command.State, dir string) error {
	schemas, err := s.Connection.Schemas(ctx)
	if err != nil {
		return err
	}
	if err := schemas.Save(ctx, dir); err != nil {
		return err
	}
	client, err := s.Client(ctx)
	if err != nil {
		return err
	}
	return saveDeprecations(ctx, client, dir)
}

// server has the schemas of a server, or of a folder.
type server struct {
	name         string // of the folder, empty for the connected server
	schemas      *schema.Client
	deprecations *deprecations
	// defined are the kinds of definitions among the files. Definitions name their deprecated versions.
	defined []kschema.GroupVersionKind
	hints   map[kschema.GroupVersionKind]string // of kinds without a schema
}

// servers returns the servers of --schemas, or the connected one.
func (o *options) servers(ctx context.Context, s *command.State, defined []*unstructured.Object) (servers []server, err error) {
	if len(o.schemas) == 0 {
		schemas, err := s.Connection.Schemas(ctx)
		if err != nil {
			return nil, err
		}
		client, err := s.Client(ctx)
		if err != nil {
			return nil, err
		}
		servers = append(servers, server{schemas: schemas, deprecations: newDeprecations(client)})
	}
	for _, dir := range o.schemas {
		offline, err := schema.NewOffline(dir)
		if err != nil {
			return nil, err
		}
		saved, err := readDeprecations(dir)
		if err != nil {
			return nil, err
		}
		servers = append(servers, server{name: filepath.Base(filepath.Clean(dir)), schemas: offline, deprecations: saved})
	}
	kinds, err := definedKinds(ctx, defined)
	if err != nil {
		return nil, err
	}
	for i := range servers {
		servers[i].defined = kinds
		servers[i].hints = map[kschema.GroupVersionKind]string{}
		if servers[i].schemas, err = servers[i].schemas.WithDefinitions(defined...); err != nil {
			return nil, err
		}
	}
	return servers, nil
}

// definedKinds returns the kinds of definitions.
func definedKinds(ctx context.Context, defined []*unstructured.Object) ([]kschema.GroupVersionKind, error) {
	none, err := schema.NewOffline("")
	if err != nil {
		return nil, err
	}
	if none, err = none.WithDefinitions(defined...); err != nil {
		return nil, err
	}
	return none.Kinds(ctx)
}

// definitions returns the definitions among objects. Broken definitions are left to the validation. It returns the errors of files if
// there are no objects.
func definitions(objects iter.Seq2[*manifest.Object, error]) (defined []*unstructured.Object, err error) {
	none, err := schema.NewOffline("")
	if err != nil {
		return nil, err
	}
	isEmpty := true
	var broken []error
	for obj, err := range objects {
		if err != nil {
			broken = append(broken, err)
			continue
		}
		isEmpty = false
		if _, err := none.WithDefinitions(obj.Object); err == nil {
			defined = append(defined, obj.Object)
		}
	}
	if isEmpty {
		return nil, errors.Join(broken...)
	}
	return defined, nil
}

// validate validates objects by the schemas of each server. broken has the errors of files.
func validate(ctx context.Context, servers []server, objects iter.Seq2[*manifest.Object, error]) (r *report, broken, err error) {
	r = &report{names: names(servers)}
	var errs []error
	for obj, err := range objects {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found := outcome{}
		for _, one := range servers {
			if err := found.add(ctx, one, obj); err != nil {
				return nil, nil, err
			}
		}
		r.add(&found, obj)
	}
	return r, errors.Join(errs...), nil
}

func names(servers []server) (names []string) {
	for _, one := range servers {
		names = append(names, one.name)
	}
	return names
}

// outcome has the findings about an object.
type outcome struct {
	findings   []finding
	notChecked []string
	invalidOn  []string // names of servers
	missingOn  []string
}

// add validates an object by the schema of a server.
func (v *outcome) add(ctx context.Context, on server, obj *manifest.Object) error {
	gvk := obj.GroupVersionKind()
	s, err := on.schemas.Kind(ctx, gvk)
	if meta.IsNoMatchError(err) {
		v.missingOn = append(v.missingOn, on.name)
		v.find(on.name, finding{Level: levelError, Keyword: keywordNoSchema, Message: "no schema of the kind", Hint: on.otherVersions(ctx, gvk)})
		return nil
	} else if err != nil {
		return err
	}
	result := s.Validate(ctx, obj.Object, nil)
	if !slices.Contains(on.defined, gvk) {
		askServer(ctx, on.deprecations, gvk, result)
	}
	for _, problem := range result.Problems {
		f := finding{Level: levelError, Path: problem.Path, Field: problem.Field(), Keyword: problem.Keyword, Message: problem.Message, Hint: problem.Hint}
		if problem.IsWarning {
			f.Level = levelWarning
		} else if !slices.Contains(v.invalidOn, on.name) {
			v.invalidOn = append(v.invalidOn, on.name)
		}
		v.find(on.name, f)
	}
	for _, what := range result.NotChecked {
		if !slices.Contains(v.notChecked, what) {
			v.notChecked = append(v.notChecked, what)
		}
	}
	return nil
}

// askServer adds what the server says about a deprecated version. It replaces the text of the schema.
func askServer(ctx context.Context, d *deprecations, gvk kschema.GroupVersionKind, result *schema.Result) {
	warning, unknown := d.of(ctx, gvk)
	isOfVersion := func(problem schema.Problem) bool {
		return problem.Keyword == keywordDeprecated && len(problem.Path) == 0
	}
	switch {
	case warning != "":
		result.Problems = slices.DeleteFunc(result.Problems, isOfVersion)
		result.Problems = append(result.Problems, schema.Problem{Keyword: keywordDeprecated, Message: warning, IsWarning: true})
	case unknown != "" && !slices.ContainsFunc(result.Problems, isOfVersion):
		result.NotChecked = append(result.NotChecked, unknown)
	}
}

// find adds a finding, or the server to an equal finding.
func (v *outcome) find(name string, f finding) {
	for i := range v.findings {
		if one := &v.findings[i]; one.Field == f.Field && one.Message == f.Message && one.Hint == f.Hint && one.Level == f.Level {
			if !slices.Contains(one.Servers, name) {
				one.Servers = append(one.Servers, name)
			}
			return
		}
	}
	f.Servers = []string{name}
	v.findings = append(v.findings, f)
}

// otherVersions names the served versions of a kind.
func (on *server) otherVersions(ctx context.Context, gvk kschema.GroupVersionKind) string {
	if hint, found := on.hints[gvk]; found {
		return hint
	}
	kinds, err := on.schemas.Kinds(ctx)
	if err != nil {
		return ""
	}
	var versions []string
	for _, kind := range kinds {
		if kind.Kind == gvk.Kind && (kind.Group == gvk.Group || kind.Version != gvk.Version) {
			versions = append(versions, kind.GroupVersion().String())
		}
	}
	hint := ""
	if len(versions) > 0 {
		hint = "there is " + gvk.Kind + " of " + strings.Join(versions, ", ")
	}
	on.hints[gvk] = hint
	return hint
}
