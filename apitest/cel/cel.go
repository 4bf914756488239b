// Package cel evaluates the CEL rules of CustomResourceDefinitions (x-kubernetes-validations) and admission policies for apitest:
//
//	server := apitest.NewServer(t, &apitest.Options{Rules: cel.Rules{}, Policies: &cel.Policies{}})
//
// It uses the API server's own code, k8s.io/apiextensions-apiserver, k8s.io/apiserver and cel-go. Their first compilation takes a
// minute or two, so the package is a separate module. Without it, writes return a warning if there are rules in the schema of the
// object, or bindings of policies.
package cel

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	limits "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/anykind/anykind/apitest"
	anykindschema "github.com/anykind/anykind/schema"
)

// Rules compiles and evaluates CEL rules like kube-apiserver.
type Rules struct{}

var _ apitest.RuleCompiler = Rules{}

// rules are the compiled rules of a schema.
type rules struct {
	schema    *schema.Structural
	validator *cel.Validator
}

// Compile returns the rules of an openAPIV3Schema.
func (Rules) Compile(openAPIV3 map[string]any) (anykindschema.Rules, error) {
	var external v1.JSONSchemaProps
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(openAPIV3, &external); err != nil {
		return nil, fmt.Errorf("compile rules: %w", err)
	}
	var internal apiextensions.JSONSchemaProps
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil); err != nil {
		return nil, fmt.Errorf("compile rules: %w", err)
	}
	structure, err := schema.NewStructural(&internal)
	if err != nil {
		return nil, fmt.Errorf("compile rules: %w", err)
	}
	if err := defaulting.PruneDefaults(structure); err != nil {
		return nil, fmt.Errorf("compile rules: %w", err)
	}
	return &rules{structure, cel.NewValidator(structure, true, limits.PerCallLimit)}, nil
}

// Validate returns the rules broken by obj. old is nil for a creation. On an update, violations in unchanged parts of obj are
// tolerated (ratcheting).
func (r *rules) Validate(ctx context.Context, obj, old map[string]any) field.ErrorList {
	if old == nil {
		errs, _ := r.validator.Validate(ctx, nil, r.schema, obj, nil, limits.RuntimeCELCostBudget)
		return errs
	}
	correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: r.schema})
	errs, _ := r.validator.Validate(ctx, nil, r.schema, obj, old, limits.RuntimeCELCostBudget, cel.WithRatcheting(correlated))
	return errs
}

// ValidateDefinition returns the rules of a definition that do not compile or may cost too much. old is nil for a creation.
func (Rules) ValidateDefinition(ctx context.Context, definition, old map[string]any) field.ErrorList {
	crd, err := toInternal(definition)
	if err != nil {
		return nil // reported by the decoding
	}
	var errs field.ErrorList
	if old == nil {
		errs = apivalidation.ValidateCustomResourceDefinition(ctx, crd)
	} else if oldCRD, err := toInternal(old); err == nil {
		errs = apivalidation.ValidateCustomResourceDefinitionUpdate(ctx, crd, oldCRD)
	}
	var ofRules field.ErrorList
	for _, err := range errs {
		if isRuleError(err) {
			ofRules = append(ofRules, err)
		}
	}
	return ofRules
}

// isRuleError reports whether an error is about the content of a rule. Package structural reports errors of its form.
func isRuleError(err *field.Error) bool {
	switch {
	case !strings.Contains(err.Field, "x-kubernetes-validations") && !strings.HasPrefix(err.Detail, "x-kubernetes-validations"):
		return false
	case strings.HasSuffix(err.Field, ".rule") || strings.HasSuffix(err.Field, ".messageExpression"):
		return err.Detail != "rule is not specified" && err.Detail != "messageExpression must be non-empty if specified"
	}
	return strings.HasSuffix(err.Field, ".optionalOldSelf") || err.Type == field.ErrorTypeForbidden && !strings.Contains(err.Detail, "to be structural")
}

func toInternal(definition map[string]any) (*apiextensions.CustomResourceDefinition, error) {
	var external v1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition, &external); err != nil {
		return nil, err
	}
	var internal apiextensions.CustomResourceDefinition
	return &internal, v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&external, &internal, nil)
}
