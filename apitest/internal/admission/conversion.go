package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

const conversionTimeout = 30 * time.Second

// conversion is spec.conversion of a CustomResourceDefinition.
type conversion struct {
	Strategy string `json:"strategy"`
	Webhook  struct {
		ClientConfig             clientConfig `json:"clientConfig"`
		ConversionReviewVersions []string     `json:"conversionReviewVersions"`
	} `json:"webhook"`
}

// conversionReview is the response of a conversion webhook.
type conversionReview struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Response   *struct {
		UID              string           `json:"uid"`
		ConvertedObjects []map[string]any `json:"convertedObjects"`
		Result           metav1.Status    `json:"result"`
	} `json:"response"`
}

// Convert converts a custom resource to a version in place, by the strategy of its definition. Strategy None changes the apiVersion
// only. The errors of webhooks have the API server's text.
func (a *Admission) Convert(ctx context.Context, definition, obj map[string]any, apiVersion string) error {
	isEmpty := len(obj) == 2 && obj["kind"] != nil && obj["apiVersion"] != nil
	if nested.String(definition, "spec", "conversion", "strategy") != "Webhook" || isEmpty || obj["apiVersion"] == apiVersion {
		obj["apiVersion"] = apiVersion
		return nil
	}
	from := (&unstructuredv1.Unstructured{Object: obj}).GroupVersionKind()
	var config conversion
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(nested.Map(definition, "spec", "conversion"), &config); err != nil {
		return err
	}
	name := "conversion_webhook_for_" + nested.String(definition, "metadata", "name")
	objects, err := a.sendConversion(ctx, name, &config, obj, apiVersion)
	if err != nil {
		return fmt.Errorf("conversion webhook for %s failed: %s", from, err.Error()) // 500, whatever the webhook's code
	}
	if len(objects) != 1 {
		return fmt.Errorf("conversion webhook for %s returned %d objects, expected 1", from, len(objects))
	}
	converted := &unstructuredv1.Unstructured{Object: objects[0]}
	if err := checkConverted(from, apiVersion, obj, converted); err != nil {
		return fmt.Errorf("conversion webhook for %s returned invalid %w", from, err)
	}
	metadata, err := convertedMetadata(nested.Map(obj, "metadata"), converted.Object["metadata"])
	if err != nil {
		return fmt.Errorf("conversion webhook for %s returned invalid metadata: %w", from, err)
	}
	converted.Object["metadata"] = metadata
	clear(obj)
	maps.Copy(obj, converted.Object)
	return nil
}

// sendConversion calls the webhook and returns the converted objects.
func (a *Admission) sendConversion(ctx context.Context, name string, config *conversion, obj map[string]any, apiVersion string) ([]map[string]any, error) {
	version := ""
	for _, one := range config.Webhook.ConversionReviewVersions {
		if version == "" && (one == "v1" || one == "v1beta1") {
			version = one
		}
	}
	const group = "apiextensions.k8s.io"
	uid := string(uuid.NewUUID())
	body, err := json.Marshal(map[string]any{
		"apiVersion": group + "/" + version, "kind": "ConversionReview",
		"request": map[string]any{"uid": uid, "desiredAPIVersion": apiVersion, "objects": []any{obj}},
	})
	if err != nil {
		return nil, err
	}
	target, err := a.target(name, &config.Webhook.ClientConfig)
	if err != nil {
		return nil, err
	}
	client, err := a.client(config.Webhook.ClientConfig.CABundle)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, conversionTimeout)
	defer cancel()
	text, err := post(ctx, client, target.String(), body)
	if err != nil {
		return nil, err
	}
	var review conversionReview
	if err := json.Unmarshal(text, &review); err != nil {
		return nil, err
	}
	want := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "ConversionReview"}
	switch got := schema.FromAPIVersionAndKind(review.APIVersion, review.Kind); {
	case version == "v1" && got != want:
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want, got)
	case review.Response == nil:
		return nil, errors.New("no response provided")
	case version == "v1" && review.Response.UID != uid:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, review.Response.UID)
	case review.Response.Result.Status != metav1.StatusSuccess && review.Response.Result.Message != "":
		return nil, errors.New(review.Response.Result.Message)
	case review.Response.Result.Status != metav1.StatusSuccess:
		return nil, fmt.Errorf("response.result.status was '%s', not 'Success'", review.Response.Result.Status)
	}
	return review.Response.ConvertedObjects, nil
}

// checkConverted compares the identities of an object and its conversion.
func checkConverted(from schema.GroupVersionKind, apiVersion string, obj map[string]any, converted *unstructuredv1.Unstructured) error {
	before := &unstructuredv1.Unstructured{Object: obj}
	switch {
	case converted.GetAPIVersion() != apiVersion:
		return fmt.Errorf("object at index 0: invalid groupVersion (expected %s, received %s)", apiVersion, converted.GetAPIVersion())
	case converted.GetKind() != from.Kind:
		return fmt.Errorf("object at index 0: invalid kind (expected %s, received %s)", from.Kind, converted.GetKind())
	case converted.GetName() != before.GetName():
		return fmt.Errorf("object: must have the same name: %s != %s", before.GetName(), converted.GetName())
	case converted.GetNamespace() != before.GetNamespace():
		return fmt.Errorf("object: must have the same namespace: %s != %s", before.GetNamespace(), converted.GetNamespace())
	case converted.GetUID() != before.GetUID():
		return fmt.Errorf("object: must have the same UID: %s != %s", before.GetUID(), converted.GetUID())
	}
	return nil
}

// convertedMetadata returns the metadata before the conversion with the labels and annotations of the conversion.
func convertedMetadata(before map[string]any, converted any) (map[string]any, error) {
	after, ok := converted.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("invalid metadata of type %T in converted object", converted)
	}
	metadata := maps.Clone(before)
	if metadata == nil {
		metadata = map[string]any{}
	}
	for _, name := range []string{"labels", "annotations"} {
		if after[name] == nil {
			delete(metadata, name)
			continue
		}
		values, ok := after[name].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("invalid metadata.%s of type %T in converted object", name, after[name])
		}
		texts := map[string]string{}
		for key, value := range values {
			text, isText := value.(string)
			if !isText {
				return nil, fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, key, value)
			}
			texts[key] = text
		}
		var errs field.ErrorList
		switch old := nested.StringMap(before, name); {
		case maps.Equal(old, texts):
		case name == "labels":
			errs = metav1validation.ValidateLabels(texts, field.NewPath("metadata", "labels"))
		default:
			errs = apivalidation.ValidateAnnotations(texts, field.NewPath("metadata", "annotation"))
		}
		if len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
		metadata[name] = values
	}
	return metadata, nil
}
