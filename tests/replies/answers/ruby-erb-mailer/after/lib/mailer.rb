# frozen_string_literal: true

require 'erb'

# Renders and sends mails.
class Mailer
  TEMPLATES = File.expand_path('../templates', __dir__)
  DEFAULT_LOCALE = 'en'
  GREETINGS = {
    'de' => 'Hallo',
    'en' => 'Hello',
    'ja' => 'こんにちは'
  }.freeze

  attr_reader :outbox

  def initialize(from: 'noreply@example.com')
    @from = from
    @outbox = []
  end

  def welcome(person)
    greeting = greeting_for(person[:locale])
    locals = {
      greeting: greeting,
      name: person[:name],
      link: "https://example.com/?u=#{person[:id]}"
    }
    deliver(
      to: person[:email],
      subject: "#{greeting}, #{person[:name]}!",
      html: render('welcome.html.erb', locals),
      text: render('welcome.txt.erb', locals)
    )
  end

  private

  # 'de', :de, 'de-AT' and 'de_CH' are all German.
  def greeting_for(locale)
    language = locale.to_s.downcase[/\A[a-z]+/]
    GREETINGS.fetch(language, GREETINGS[DEFAULT_LOCALE])
  end

  def render(file, locals)
    template = File.read(File.join(TEMPLATES, file), encoding: 'utf-8')
    ERB.new(template, trim_mode: '-').result_with_hash(locals)
  end

  def deliver(**mail)
    @outbox << { from: @from, **mail }
  end
end
