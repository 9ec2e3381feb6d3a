# frozen_string_literal: true

require 'erb'

# Renders and sends mails.
class Mailer
  TEMPLATES = File.expand_path('../templates', __dir__)
  GREETING = 'Hello'

  attr_reader :outbox

  def initialize(from: 'noreply@example.com')
    @from = from
    @outbox = []
  end

  def welcome(person)
    html = render('welcome.html.erb', name: person[:name], link: "https://example.com/?u=#{person[:id]}")
    deliver(to: person[:email], subject: "#{GREETING}, #{person[:name]}!", html: html)
  end

  private

  def render(file, locals)
    template = File.read(File.join(TEMPLATES, file), encoding: 'utf-8')
    ERB.new(template, trim_mode: '-').result_with_hash(locals)
  end

  def deliver(**mail)
    @outbox << { from: @from, **mail }
  end
end
