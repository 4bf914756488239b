package apitest

import "github.com/anykind/anykind/apitest/internal/structural"

// RuleCompiler compiles the CEL rules of CustomResourceDefinitions (x-kubernetes-validations) for Options.Rules. Rules of the
// module apitest/cel implements it with the API server's own code.
type RuleCompiler = structural.RuleCompiler

// Rules evaluates the CEL rules of one schema.
type Rules = structural.Rules
