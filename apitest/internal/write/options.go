package write

import (
	"bytes"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest/internal/limits"
)

// writeOptions are the common options of create, update and patch.
type writeOptions struct {
	dryRun          []string
	fieldManager    string
	fieldValidation string // Ignore, Warn or Strict
	force           bool
}

func createOptions(query url.Values) (writeOptions, error) {
	var options metav1.CreateOptions
	if err := metav1.Convert_url_Values_To_v1_CreateOptions(&query, &options, nil); err != nil {
		return writeOptions{}, apierrors.NewBadRequest(err.Error())
	}
	if errs := validation.ValidateCreateOptions(&options); len(errs) > 0 {
		return writeOptions{}, invalidOptions("CreateOptions", errs)
	}
	return writeOptions{options.DryRun, options.FieldManager, fieldValidation(options.FieldValidation), false}, nil
}

func updateOptions(query url.Values) (writeOptions, error) {
	var options metav1.UpdateOptions
	if err := metav1.Convert_url_Values_To_v1_UpdateOptions(&query, &options, nil); err != nil {
		return writeOptions{}, apierrors.NewBadRequest(err.Error())
	}
	if errs := validation.ValidateUpdateOptions(&options); len(errs) > 0 {
		return writeOptions{}, invalidOptions("UpdateOptions", errs)
	}
	return writeOptions{options.DryRun, options.FieldManager, fieldValidation(options.FieldValidation), false}, nil
}

func patchOptions(query url.Values, patchType types.PatchType) (writeOptions, error) {
	var options metav1.PatchOptions
	if err := metav1.Convert_url_Values_To_v1_PatchOptions(&query, &options, nil); err != nil {
		return writeOptions{}, apierrors.NewBadRequest(err.Error())
	}
	if errs := validation.ValidatePatchOptions(&options, patchType); len(errs) > 0 {
		return writeOptions{}, invalidOptions("PatchOptions", errs)
	}
	force := options.Force != nil && *options.Force
	return writeOptions{options.DryRun, options.FieldManager, fieldValidation(options.FieldValidation), force}, nil
}

// deleteOptions decodes the options of a deletion from its body or, without a body, from the query.
func deleteOptions(query url.Values, body Body) (*metav1.DeleteOptions, error) {
	options := new(metav1.DeleteOptions)
	switch {
	case body.Object != nil:
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(body.Object, options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	case len(body.Data) > 0 && body.Err != nil:
		return nil, body.Err
	case len(body.Data) > 0:
		if err := decodeDeleteOptions(body, options); err != nil {
			return nil, err
		}
	default:
		if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&query, options, nil); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	options.IgnoreStoreReadErrorWithClusterBreakingPotential = nil
	if errs := validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return nil, invalidOptions("DeleteOptions", errs)
	}
	options.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
	return options, nil
}

// orphanDependents returns the deprecated predecessor of propagationPolicy.
func orphanDependents(options *metav1.DeleteOptions) *bool {
	return options.OrphanDependents //nolint:staticcheck // clients may still send it
}

func decodeDeleteOptions(body Body, options *metav1.DeleteOptions) error {
	data := body.Data
	if body.MediaType == "application/yaml" {
		if err := limits.CheckAliases(data); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		converted, err := yaml.YAMLToJSON(data)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		data = converted
	}
	var kind bodyKind
	if err := utiljson.Unmarshal(data, &kind); err != nil {
		return apierrors.NewBadRequest("couldn't get version/kind; json parse error: " + err.Error())
	}
	if kind.Kind != "" && kind.Kind != "DeleteOptions" {
		return apierrors.NewBadRequest("no kind \"" + kind.Kind + "\" is registered for version \"" + kind.APIVersion +
			"\" in scheme \"pkg/runtime/scheme.go:111\"")
	}
	if err := utiljson.Unmarshal(data, options); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func invalidOptions(kind string, errs field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

func fieldValidation(directive string) string {
	if directive == "" {
		return metav1.FieldValidationWarn
	}
	return directive
}

func (o writeOptions) isDryRun() bool { return len(o.dryRun) > 0 }

// asCreate and asUpdate return the options for admission.
func (o writeOptions) asCreate() runtime.Object {
	options := &metav1.CreateOptions{DryRun: o.dryRun, FieldManager: o.fieldManager, FieldValidation: o.fieldValidation}
	options.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
	return options
}

func (o writeOptions) asUpdate() runtime.Object {
	options := &metav1.UpdateOptions{DryRun: o.dryRun, FieldManager: o.fieldManager, FieldValidation: o.fieldValidation}
	options.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions"))
	return options
}

// managerName returns the field manager of a request: option, or the printable start of the user agent.
func managerName(option, userAgent string) string {
	if option != "" {
		return option
	}
	name, _, _ := strings.Cut(userAgent, "/")
	var buffer bytes.Buffer
	for _, r := range name {
		if !unicode.IsPrint(r) {
			continue
		}
		if buffer.Len()+utf8.RuneLen(r) > validation.FieldManagerMaxLength {
			break
		}
		buffer.WriteRune(r)
	}
	return buffer.String()
}
