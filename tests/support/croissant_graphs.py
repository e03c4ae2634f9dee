"""Reads JSON-LD of Croissant Tasks as a graph, and says which of its rules a file breaks."""

import json

from rdflib import RDF, XSD, Graph, Literal, Namespace, URIRef

CR = Namespace("http://mlcommons.org/croissant/")
SCHEMA = Namespace("https://schema.org/")
BASE = "https://example.org/file"


def read_graph(value):
    """The triples of a JSON value. Ids that are fragments get a base."""
    return Graph().parse(data=json.dumps(value), format="json-ld", publicID=BASE)


def has_class(graph, node, *classes):
    return any((node, RDF.type, each) in graph for each in classes)


def list_breaches(graph):
    """The rules of the vocabulary's shapes that tasks and results in a graph break."""
    problems = graph.subjects(RDF.type, CR.TaskProblem)
    solutions = graph.subjects(RDF.type, CR.TaskSolution)
    results = graph.subjects(RDF.type, CR.EvaluationResult)
    breaches = [text for node in problems for text in check_problem(graph, node)]
    breaches += [text for node in solutions for text in check_solution(graph, node)]
    breaches += [text for node in results for text in check_result(graph, node)]
    for evaluation in graph.subjects(RDF.type, CR.EvaluationTask):
        if len(list(graph.objects(evaluation, CR.evaluatedSolution))) != 1:
            breaches.append(f"{evaluation} is of no single solution")
    return breaches


def check_problem(graph, problem):
    specs = {"input": "InputSpec", "output": "OutputSpec", "implementation": "ImplementationSpec"}
    found = [
        node
        for name, spec in specs.items()
        for node in graph.objects(problem, CR[name])
        if has_class(graph, node, CR[spec])
    ]
    if not found:
        yield f"{problem} asks for nothing"
    for node in graph.objects(problem, CR.evaluation):
        if not has_class(graph, node, CR.EvaluationSpec, CR.EvaluationTask):
            yield f"{problem} has an evaluation of another class"
    for spec in graph.objects(problem, CR.output):
        for node in graph.objects(spec, CR.schema):
            if not has_class(graph, node, CR.RecordSet):
                yield f"{spec} has a schema of another class"


def check_solution(graph, solution):
    problems = list(graph.objects(solution, SCHEMA.isBasedOn))
    if not problems or not all(isinstance(node, URIRef) for node in problems):
        yield f"{solution} solves no problem"
    models = list(graph.objects(solution, CR.implementation))
    if not models or not all(has_class(graph, m, SCHEMA.SoftwareApplication) for m in models):
        yield f"{solution} has no implementation"


def check_result(graph, result):
    value = graph.value(result, CR.value)
    if not isinstance(value, Literal) or value.datatype not in (XSD.decimal, XSD.integer):
        yield f"{result} has the value {value!r}"
    if not isinstance(graph.value(result, CR.metric), (Literal, URIRef)):
        yield f"{result} has no metric"
