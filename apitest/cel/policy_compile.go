package cel

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// policyCompiler compiles the expressions of a policy.
type policyCompiler struct {
	*plugincel.CompositedCompiler

	options plugincel.OptionalVariableDeclarations
}

func newPolicyCompiler(variables []admissionv1.Variable, hasParams bool) (*policyCompiler, error) {
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, err
	}
	c := &policyCompiler{compiler, plugincel.OptionalVariableDeclarations{HasParams: hasParams, HasAuthorizer: true}}
	var named []plugincel.NamedExpressionAccessor
	for _, variable := range variables {
		named = append(named, &validating.Variable{Name: variable.Name, Expression: variable.Expression})
	}
	c.CompileAndStoreVariables(named, c.options, environment.StoredExpressions)
	return c, nil
}

func (c *policyCompiler) conditions(expressions []plugincel.ExpressionAccessor, options plugincel.OptionalVariableDeclarations) plugincel.ConditionEvaluator {
	return c.CompileCondition(expressions, options, environment.StoredExpressions)
}

// matcher returns the matcher of matchConditions, or nil without conditions.
func (c *policyCompiler) matcher(conditions []admissionv1.MatchCondition, failurePolicy *admissionv1.FailurePolicyType, name string) matchconditions.Matcher {
	if len(conditions) == 0 {
		return nil
	}
	expressions := make([]plugincel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		expressions[i] = (*matchconditions.MatchCondition)(&conditions[i])
	}
	return matchconditions.NewMatcher(c.conditions(expressions, c.options), failurePolicy, "policy", "validate", name)
}

func compileValidating(policy *admissionv1.ValidatingAdmissionPolicy) validating.Validator {
	spec := &policy.Spec
	c, err := newPolicyCompiler(spec.Variables, spec.ParamKind != nil)
	if err != nil {
		return validating.NewValidator(nil, nil, nil, nil, spec.FailurePolicy, err)
	}
	var validations, messages, annotations []plugincel.ExpressionAccessor
	for _, v := range spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		var message plugincel.ExpressionAccessor
		if v.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, message)
	}
	for _, a := range spec.AuditAnnotations {
		annotations = append(annotations, &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	ofMessages := c.options
	ofMessages.HasAuthorizer = false
	return validating.NewValidator(c.conditions(validations, c.options), c.matcher(spec.MatchConditions, spec.FailurePolicy, policy.Name),
		c.conditions(annotations, c.options), c.conditions(messages, ofMessages), spec.FailurePolicy, nil)
}

func compileMutating(policy *admissionv1.MutatingAdmissionPolicy) mutating.PolicyEvaluator {
	spec := &policy.Spec
	c, err := newPolicyCompiler(spec.Variables, spec.ParamKind != nil)
	if err != nil {
		return mutating.PolicyEvaluator{Error: err}
	}
	options := c.options
	options.HasPatchTypes = true
	evaluator := mutating.PolicyEvaluator{Matcher: c.matcher(spec.MatchConditions, spec.FailurePolicy, policy.Name), CompositedCompiler: c.CompositedCompiler}
	for _, mutation := range spec.Mutations {
		switch {
		case mutation.JSONPatch != nil:
			expression := &patch.JSONPatchCondition{Expression: mutation.JSONPatch.Expression}
			compiled := c.CompileMutatingEvaluator(expression, options, environment.StoredExpressions)
			evaluator.Mutators = append(evaluator.Mutators, patch.NewJSONPatcher(compiled))
		case mutation.ApplyConfiguration != nil:
			expression := &patch.ApplyConfigurationCondition{Expression: mutation.ApplyConfiguration.Expression}
			compiled := c.CompileMutatingEvaluator(expression, options, environment.StoredExpressions)
			evaluator.Mutators = append(evaluator.Mutators, patch.NewApplyConfigurationPatcher(compiled))
		}
	}
	return evaluator
}
