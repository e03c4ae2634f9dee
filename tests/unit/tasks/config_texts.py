"""Configurations that several tests start from."""

FULL = """\
version: 1
name: Test task
summary: A task with everything.
language: en
instructions: Write.
goal:
  field: label
  text: "Write a post that is {label}"
context:
  - {name: passage, type: text, label: Passage}
  - {name: prompt, type: long_text, required: false}
  - {name: offers, type: candidates, required: false}
input:
  - {name: text, type: long_text, label: Your post, min_length: 8, max_length: 30, counter: true}
  - name: label
    type: multiclass
    label: Your label
    labels:
      - {value: hate, display: hateful, goal: full of hate}
      - not-hate
  - name: kind
    type: multilabel
    label: What kind is it?
    labels: [x, y]
    when: {field: label, equals: hate}
  - {name: answer, type: span, label: The answer, reference: passage}
  - {name: sure, type: slider, minimum: 0, maximum: 1, step: 0.25, required: false}
output:
  - label
  - {name: prob, type: prob, reference: label}
  - {name: answer, type: span, reference: passage}
metadata:
  create:
    - {name: why, type: text, when: {outcome: fooled}}
  validate:
    - {name: better, type: multiclass, labels: [a, b], when: {verdict: incorrect}}
    - {name: note, type: text, when: {field: better, equals: a}}
verdict: {type: string_f1, field: answer, threshold: 0.4, ask_between: [0.3, 0.5]}
metrics: {main: squad_f1, also: [accuracy], deltas: [fairness]}
leaderboard: {weights: {squad_f1: 4, memory: 1}}
slices: [tag, language, passage]
validation: {mode: label, votes: {rule: at-least, needed: 3, of: 5}}
support: {prompt_field: prompt, challenges: [{name: count, text: Count.}]}
examples:
  good:
    - context: {passage: The red fox.}
      input: {text: A long enough post, label: hate, kind: [x], answer: red fox}
      reason: It is fine.
  bad:
    - context: {}
      input: {text: no, label: not-hate}
      reason: It is too short.
"""
MINIMAL = """\
version: 1
name: Small
goal: {text: Write}
input: [{name: text, type: text}]
output: [{name: answer, type: text}]
verdict: {type: ask_user}
metrics: {main: bleu}
"""
